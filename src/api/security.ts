/** The image and the security context of member Pods. */
import Type from 'typebox';
import { cel } from './cel.ts';
import { optionalEnum, optionalList, optionalObject, optionalText } from './optional.ts';
import type { Template } from './template.ts';

/** The default user, group and fsGroup. */
export const USER = 65532;

/** What the restricted Pod Security level requires of a container, and more. */
export const CONFINED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const;

const id = (description: string) => Type.Integer({ format: 'int64', minimum: 1, maximum: 2_147_483_647, description });

/** Only fields that the restricted Pod Security level leaves free: every accepted value complies with it. */
export const podSecurityContext = optionalObject(
  'Overrides of the Pod security context, within the restricted Pod Security level. What that level requires (non-root, seccomp) cannot be changed.',
  {
    runAsUser: Type.Optional(id('The user of the etcd process. Absent: 65532.')),
    runAsGroup: Type.Optional(id('The group of the etcd process. Absent: 65532.')),
    fsGroup: Type.Optional(id('The group that owns the volume. Absent: 65532.')),
    fsGroupChangePolicy: optionalEnum('OnRootMismatch avoids a recursive chown of a large volume at every start.', [
      'OnRootMismatch',
      'Always',
    ]),
    supplementalGroups: optionalList(id('An additional group.'), 32),
    seLinuxOptions: Type.Optional(
      Type.Object({
        level: optionalText('The SELinux level, such as s0:c123,c456.', {
          pattern: '^s[0-9]+(-s[0-9]+)?(:c[0-9]+([.,]c[0-9]+)*)?$',
          maxLength: 128,
        }),
      }),
    ),
  },
);

export const image = optionalObject(
  'The etcd image. Its tag is always v followed by the version.',
  {
    repository: optionalText(
      'The repository of the image, without a tag. Must be in the list of allowed repositories of the operator. Absent: the default repository of the operator.',
      {
        pattern: '^[a-z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$',
        maxLength: 255,
      },
    ),
    digest: optionalText('Pins the image by its digest. It belongs to one version: change both together.', {
      pattern: '^sha256:[0-9a-f]{64}$',
    }),
  },
  cel({
    rule: 'has(self.repository) || has(self.digest)',
    message: 'image is empty: set repository or digest, or leave image out',
  }),
);

/** The image of a cluster or member. `repository`: the default of the operator. */
export function etcdImageOf(spec: Pick<Template, 'image' | 'version'>, repository: string): string {
  const pinned = spec.image?.digest === undefined ? '' : `@${spec.image.digest}`;
  return `${spec.image?.repository ?? repository}:v${spec.version}${pinned}`;
}

/** The repositories that etcd images may be pulled from: set by the administrator, not by the users who write EtcdClusters. */
export interface ImagePolicy {
  /** The repository of clusters that set none; always allowed. */
  readonly repository: string;
  /** Additional repositories; an entry that ends in `/*` allows everything below. */
  readonly allowed: readonly string[];
  /** The operator's own image, which agents run; absent when it is not configured. */
  readonly operator?: string;
}

export const isAllowed = ({ repository, allowed }: ImagePolicy, wanted: string): boolean =>
  [repository, ...allowed].some((entry) =>
    entry.endsWith('/*') ? wanted.startsWith(entry.slice(0, -1)) : wanted === entry,
  );

/** A message when the repository is not allowed; `undefined` when it is. */
export const forbiddenImage = (images: ImagePolicy, repository: string | undefined): string | undefined =>
  repository === undefined || isAllowed(images, repository)
    ? undefined
    : `image.repository ${repository} is not in the list of allowed etcd image repositories of the operator`;
