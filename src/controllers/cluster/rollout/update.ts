/** The EtcdMember of a member after its next restart, and the steps that lead there. The Pod follows from its EtcdMember. */
import type { EtcdMember } from '../../../api/etcd-member.ts';
import { RESTARTED_AT_ANNOTATION } from '../../../api/names.ts';
import type { Template } from '../../../api/template.ts';
import { stampAnnotation, stampOf } from '../../../domain/pod-template.ts';
import { mergePatch } from '../../../lib/merge-patch.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import type { MemberView, Observed } from '../observed.ts';
import { restartRequest } from './failed.ts';
import { heldFields, heldTemplate } from './held.ts';
import { podOf } from './pod-ref.ts';
import { dueFields, isRestartRequested, templateOf } from './state.ts';
import { differingFields } from './template.ts';
import { versionHeldBy } from './version-change.ts';

/** The fields that it gets with a restart now, whatever the reason. */
export const givenFields = (o: Observed, m: MemberView): readonly (keyof Template)[] =>
  heldFields(o, m) ?? (versionHeldBy(o, m) ? [] : dueFields(o, m));

/**
 * Its EtcdMember with the fields that are due. While their version is held back, one that serves stays as it is, because options may
 * be written for it; one that does not gets the rest.
 */
export function successorOf(o: Observed, m: MemberView): EtcdMember {
  const { object } = m;
  const held = heldFields(o, m);
  if (!held && versionHeldBy(o, m)) return object;
  const template = held ? heldTemplate(o, m) : templateOf(o, m);
  const due = dueFields(o, m).length > 0 ? differingFields(m, template) : [];
  const fields = Object.fromEntries(due.map((field) => [field, template[field]]));
  const request = isRestartRequested(o, m) ? restartRequest(o) : undefined;
  const annotations = { ...object.metadata.annotations, [RESTARTED_AT_ANNOTATION]: request ?? '' };
  return {
    ...object,
    ...(request !== undefined && { metadata: { ...object.metadata, annotations } }),
    spec: { ...object.spec, ...fields },
  };
}

/**
 * The Pod of an earlier operator gets the stamp of what its EtcdMember says now. Without it, nothing would tell after the patch
 * that the Pod still has the old template, and an operator that is killed here would never restart it.
 */
const stampSteps = (m: MemberView): readonly Step[] =>
  m.pod.is === 'present' && m.pod.terminating !== true && !m.pod.stamp
    ? [{ do: 'patch', to: podOf(m), fields: { metadata: { annotations: stampAnnotation(stampOf(m.object)) } } }]
    : [];

/**
 * Empty when its EtcdMember has been changed already, or another reason restarts the member. The Pod is deleted in a later reconcile,
 * whose cache shows the changed EtcdMember: while the watch is late, the member controller would create the next Pod from the old
 * one, and the member would restart twice.
 */
export function updateSteps(o: Observed, m: MemberView): readonly Step[] {
  const [before, after] = [m.object, successorOf(o, m)];
  const fields = mergePatch(
    { metadata: { annotations: before.metadata.annotations }, spec: before.spec },
    { metadata: { annotations: after.metadata.annotations }, spec: after.spec },
  );
  if (!fields) return [];
  return [...stampSteps(m), { do: 'patch', to: refTo('EtcdMember', before, { resourceVersion: true }), fields }];
}
