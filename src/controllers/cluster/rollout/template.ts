/** The template that each member should have, and what of it its running Pod lacks. */
import { quotaFor } from '../../../api/defaults.ts';
import type { Target } from '../../../api/etcd-cluster-status.ts';
import { TEMPLATE_FIELDS, type Template } from '../../../api/template.ts';
import { RESTART_FIELDS, unstampedFields } from '../../../domain/pod-template.ts';

import { type ClusterFacts, type MemberView, wanted } from '../observed.ts';
import { sameField } from '../spec-drift.ts';

/**
 * The default quota follows from storage.size, and the volumes of running members keep their size: with the quota of a larger
 * volume, a volume would be full before etcd rejects writes.
 */
export function fitted(target: Template | Target, to: Pick<Template, 'storage'>): Template {
  const { options, storage } = target;
  if (options === undefined || options.quotaBackendBytes !== quotaFor(storage.size)) return target;
  return { ...target, options: { ...options, quotaBackendBytes: quotaFor(to.storage.size) } };
}

/** The fields of this template that its EtcdMember does not have. */
export const differingFields = ({ object }: MemberView, template: Template | Target): readonly (keyof Template)[] =>
  RESTART_FIELDS.filter((field) => !sameField(field, object.spec, fitted(template, object.spec)));

/** Its EtcdMember has been changed, and its Pod not yet. A Pod that is being deleted is not waited for. */
const staleFields = ({ object, pod }: MemberView): readonly (keyof Template)[] =>
  pod.is === 'present' && pod.terminating !== true && pod.stamp ? unstampedFields(pod.stamp, object) : [];

/** The fields of this template that the running member does not have. A Pod of an earlier operator is taken for what its EtcdMember says. */
export function lackedFields(m: MemberView, template: Template | Target): readonly (keyof Template)[] {
  const lacked = new Set([...differingFields(m, template), ...staleFields(m)]);
  return RESTART_FIELDS.filter((field) => lacked.has(field));
}

/** All fields of the spec that the running member does not have, with those that need no restart. */
export function outdatedFields(o: ClusterFacts, m: MemberView): readonly (keyof Template)[] {
  const lacked = lackedFields(m, wanted(o));
  return TEMPLATE_FIELDS.filter((field) =>
    RESTART_FIELDS.includes(field) ? lacked.includes(field) : !sameField(field, m.object.spec, wanted(o)),
  );
}

/** For messages: `version 3.6.17, options`. */
export const describedFields = (fields: readonly (keyof Template)[], { version }: Template): string =>
  fields.map((field) => (field === 'version' ? `version ${version}` : field)).join(', ');
