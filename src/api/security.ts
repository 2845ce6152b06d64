/** Which image a member runs, and as whom. */
import Type, { type Static } from 'typebox';
import { cel } from './cel.ts';
import type { DeepReadonly } from './meta.ts';
import { atomic } from './text.ts';

/** Who runs when nobody says otherwise. */
export const USER = 65532;

/** What the restricted level demands of a container, and more. */
export const CONFINED = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
} as const;

const id = (description: string) => Type.Integer({ format: 'int64', minimum: 1, maximum: 2_147_483_647, description });

/** Only what the "restricted" Pod Security level leaves free: every value that is accepted passes it. */
export const PodSecurityContextSchema = Type.Object(
  {
    runAsUser: Type.Optional(id('The user of the etcd process. Absent: 65532.')),
    runAsGroup: Type.Optional(id('The group of the etcd process. Absent: 65532.')),
    fsGroup: Type.Optional(id('The group that owns the volume. Absent: 65532.')),
    fsGroupChangePolicy: Type.Optional(
      Type.Enum(['OnRootMismatch', 'Always'], {
        type: 'string',
        description: 'OnRootMismatch saves walking through a large volume at every start.',
      }),
    ),
    supplementalGroups: Type.Optional(Type.Array(id('A further group.'), { maxItems: 32, ...atomic })),
    seLinuxOptions: Type.Optional(
      Type.Object({
        level: Type.Optional(
          Type.String({
            pattern: '^s[0-9]+(-s[0-9]+)?(:c[0-9]+([.,]c[0-9]+)*)?$',
            maxLength: 128,
            description: 'The SELinux level, such as s0:c123,c456.',
          }),
        ),
      }),
    ),
  },
  {
    description:
      'Overrides of the Pod security context, within the restricted Pod Security level. What that level demands (non-root, seccomp) cannot be changed.',
  },
);

export const ImageSchema = Type.Object(
  {
    repository: Type.Optional(
      Type.String({
        pattern: '^[a-z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$',
        maxLength: 255,
        description:
          'Where the image comes from, without a tag. Must be on the administrator’s list. Absent: the repository that the operator is configured with.',
      }),
    ),
    digest: Type.Optional(
      Type.String({
        pattern: '^sha256:[0-9a-f]{64}$',
        description: 'Pins the image by its content. Belongs to one version: change both together.',
      }),
    ),
  },
  {
    description: 'The etcd image. Its tag is always v and the version.',
    ...cel({
      rule: 'has(self.repository) || has(self.digest)',
      message: 'image is empty: set repository or digest, or leave image out',
    }),
  },
);

export type PodSecurityContext = DeepReadonly<Static<typeof PodSecurityContextSchema>>;
export type Image = DeepReadonly<Static<typeof ImageSchema>>;

/** Where etcd images may come from: set by the administrator, not by whoever writes an EtcdCluster. */
export interface ImagePolicy {
  /** The repository of clusters that name none; always allowed. */
  readonly repository: string;
  /** Further ones; an entry that ends in `/*` allows everything below. */
  readonly allowed: readonly string[];
  /** The operator's own, which agents run from; absent when nobody has said which it is. */
  readonly operator?: string;
}

export const isAllowed = ({ repository, allowed }: ImagePolicy, asked: string): boolean =>
  [repository, ...allowed].some((entry) =>
    entry.endsWith('/*') ? asked.startsWith(entry.slice(0, -1)) : asked === entry,
  );

/** Why the administrator's list keeps the image from being used; `undefined` when it does not. */
export const forbiddenImage = (images: ImagePolicy, repository: string | undefined): string | undefined =>
  repository === undefined || isAllowed(images, repository)
    ? undefined
    : `image.repository ${repository} is not on the administrator's list of etcd images`;
