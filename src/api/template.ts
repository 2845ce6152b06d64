/** The template of every member of a cluster: written by users, latched as the target, copied to each member. */
import Type from 'typebox';
import { unvalidated } from './cel.ts';
import { ExtraArgsSchema } from './extra-args.ts';
import type { Accepted } from './meta.ts';
import { optionalInt64 } from './optional.ts';
import { options } from './options.ts';
import { AdditionalMetadataSchema, ResourcesSchema } from './resources.ts';
import { AffinitySchema, SpreadSchema, TolerationsSchema, TopologySpreadConstraintsSchema } from './scheduling.ts';
import { image, podSecurityContext } from './security.ts';
import { NodeSelectorSchema } from './selectors.ts';
import { StorageTargetSchema } from './storage.ts';
import { localReference, subdomain } from './text.ts';

export const VersionSchema = Type.String({
  pattern: String.raw`^\d+\.\d+\.\d+$`,
  maxLength: 32,
  description: 'The etcd version, such as 3.6.16: the tag of the etcd image without its v.',
});

/** Optional fields, as users write them. Version and storage are separate: they are always set. */
export const templateFields = {
  resources: Type.Optional(ResourcesSchema),
  affinity: Type.Optional(AffinitySchema),
  topologySpreadConstraints: Type.Optional(TopologySpreadConstraintsSchema),
  additionalMetadata: Type.Optional(AdditionalMetadataSchema),
  options,
  imagePullSecrets: Type.Optional(
    // Any name: the kubelet ignores a pull Secret that does not exist, so such Pods run.
    Type.Array(localReference('imagePullSecrets[]', 'A Secret of type kubernetes.io/dockerconfigjson.', {}), {
      maxItems: 64,
      description: 'Secrets for pulling the etcd image, and the operator image for snapshots and restores.',
    }),
  ),
  image,
  extraArgs: Type.Optional(ExtraArgsSchema),
  spread: Type.Optional(SpreadSchema),
  tolerations: Type.Optional(TolerationsSchema),
  nodeSelector: Type.Optional(NodeSelectorSchema),
  priorityClassName: Type.Optional(
    subdomain('The PriorityClass of member Pods: decides which Pods are preempted when a node is full.'),
  ),
  terminationGracePeriodSeconds: optionalInt64(
    'How long etcd may take to stop; a leader transfers its leadership in this time. Absent: the 30 of Kubernetes.',
    { minimum: 5, maximum: 3600 },
  ),
  podSecurityContext,
} as const;

/** Complete, and not validated again: the operator could not copy a template that older rules had accepted. */
export const TemplateSchema = unvalidated(
  Type.Object({ version: Type.String(), storage: StorageTargetSchema, ...templateFields }),
);
export type Template = Accepted<typeof TemplateSchema>;

/** In the order in which messages list them. */
export const TEMPLATE_FIELDS = ['version', 'storage', ...Object.keys(templateFields)] as readonly (keyof Template)[];
