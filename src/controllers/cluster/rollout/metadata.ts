/** Labels and annotations of spec.additionalMetadata on members, their Pods and PVCs: patched in place, no member restarts for them. */
import { memberLabels } from '../../../api/names.ts';
import type { AdditionalMetadata } from '../../../api/resources.ts';
import { metadataWith } from '../../../domain/additional-metadata.ts';
import { identity } from '../../../domain/ownership.ts';
import { mergePatch, sameJson } from '../../../lib/merge-patch.ts';
import { refTo, type Step } from '../../../runtime/plan.ts';
import { isNotBeingDeleted, type MemberView, type Observed, wanted } from '../observed.ts';
import { podOf } from './pod-ref.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * From what the object was created with to what is wanted, key by key: a patch of all annotations would remove those of the
 * operator, and a PVC without the uid of its member counts as foreign.
 */
function metadataFields(
  m: MemberView,
  before: AdditionalMetadata | undefined,
  after: AdditionalMetadata | undefined,
  on: 'volume' | 'other',
): Fields | undefined {
  const labels = memberLabels(m.object.spec.clusterName, identity(m.object).name);
  const entries = (additional: AdditionalMetadata | undefined) => ({
    annotations: {},
    ...metadataWith(additional, labels, { on }),
  });
  return mergePatch(entries(before), entries(after));
}

/** The EtcdMember last: until then, the difference is found again. */
function relabelOne(o: Observed, m: MemberView): readonly Step[] {
  const [before, after] = [m.object.spec.additionalMetadata, wanted(o).additionalMetadata];
  const metadata = metadataFields(m, before, after, 'other');
  const onVolume = metadataFields(m, before, after, 'volume');
  const spec = mergePatch({ additionalMetadata: before }, { additionalMetadata: after });
  return [
    ...(metadata && m.pod.is === 'present' ? [{ do: 'patch', to: podOf(m), fields: { metadata } } as const] : []),
    ...(onVolume && m.pvcObject
      ? [{ do: 'patch', to: refTo('PersistentVolumeClaim', m.pvcObject), fields: { metadata: onVolume } } as const]
      : []),
    { do: 'patch', to: refTo('EtcdMember', m.object), fields: { ...(metadata && { metadata }), spec } },
  ];
}

/** One sequence per member. */
export const relabelMemberSteps = (o: Observed): readonly (readonly Step[])[] =>
  o.members
    .filter((m) => isNotBeingDeleted(m) && !sameJson(m.object.spec.additionalMetadata, wanted(o).additionalMetadata))
    .map((m) => relabelOne(o, m));
