/** The spec of a cluster, compared with its members and with what the administrator allows. */

import { specOf } from '../../api/defaults.ts';
import { DEFAULT_PROGRESS_DEADLINE_SECONDS } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import type { Resources } from '../../api/resources.ts';
import { forbiddenImage } from '../../api/security.ts';
import { DEFAULT_SIZE } from '../../api/storage.ts';
import { TEMPLATE_FIELDS, type Template } from '../../api/template.ts';
import { type ConditionUpdate, OPERATOR_IMAGE_NOT_CONFIGURED } from '../../domain/conditions.ts';
import type { Blocked } from '../../domain/disruption.ts';
import { RESTART_FIELDS } from '../../domain/pod-template.ts';
import { REFERENCE_NOT_PERMITTED } from '../../domain/tenancy.ts';
import { isObject, sameJson } from '../../lib/merge-patch.ts';
import { parseQuantity, sameQuantity } from '../../lib/quantity.ts';
import { iso } from '../../lib/time.ts';
import { type ClusterFacts, type Gathered, isFormed, type MemberView, type Observed, wanted } from './observed.ts';
import { restoreImpossible } from './restore.ts';

/** Why the spec is not applied, and what a user can do about it. */
export function specBlockedBy(o: ClusterFacts): Blocked | undefined {
  const { repository, allowed } = o.images;
  const image = forbiddenImage(o.images, o.cluster.spec.image?.repository);
  const remedy = `use one of ${[repository, ...allowed].join(', ')}, or ask the administrator to allow it`;
  if (image !== undefined) return { reason: 'ImageNotAllowed', message: `${image}: ${remedy}` };
  if (o.notPermitted !== undefined) return { reason: REFERENCE_NOT_PERMITTED, message: o.notPermitted };
  if (o.restoreBlockedBy) return o.restoreBlockedBy;
  const message = restoreImpossible(o);
  return message === undefined ? undefined : { reason: OPERATOR_IMAGE_NOT_CONFIGURED, message };
}

/**
 * While the spec of a formed cluster is blocked, its replicas and its template are not applied: the rules get the recorded target in their place. Applied
 * in part, the replicas of an edit would be met, and a lost member replaced by one whose image is never started.
 */
export function withApplicableSpec(gathered: Gathered): Gathered & Pick<Observed, 'specBlockedBy' | 'blockedSpec'> {
  const { cluster } = gathered;
  const { observed } = cluster.status ?? {};
  const blocked = isFormed(gathered) && observed && specBlockedBy(gathered);
  if (!blocked) return gathered;
  const { replicas, version } = observed;
  const message = `${blocked.message}. Until then neither replicas nor a setting of members is applied: the cluster keeps to its last accepted spec (status.observed: replicas ${replicas}, version ${version})`;
  return {
    ...gathered,
    cluster: { ...cluster, spec: specOf(observed, cluster.spec) },
    specBlockedBy: { ...blocked, message },
    blockedSpec: cluster.spec,
  };
}

export const IMAGE_ALLOWED = 'ImageAllowed';

/** Members whose image the administrator does not allow any more. They keep it, which must not go unnoticed. */
export function imageConditions({ members, images }: ClusterFacts): readonly ConditionUpdate[] {
  const kept = members.filter(({ object }) => forbiddenImage(images, object.spec.image?.repository) !== undefined);
  if (kept.length === 0) return [];
  const repositories = [...new Set(kept.map(({ object }) => object.spec.image?.repository))].join(', ');
  const message = `${kept.map(({ object }) => object.metadata.name).join(', ')}: image.repository ${repositories} is not in the list of allowed etcd image repositories of the operator. Members that have joined with it keep it, and no other member is started with it: allow it again, or change image.repository and delete these EtcdMembers one after the other`;
  return [{ type: IMAGE_ALLOWED, status: 'False', reason: 'ImageNotAllowed', message }];
}

export const QUOTA_FITS_VOLUME = 'QuotaFitsVolume';

/** A quota above the volume size is accepted and reported: the volume is full before etcd rejects writes, and a member with a full volume crashes. */
export function quotaConditions({ cluster: { spec } }: ClusterFacts): readonly ConditionUpdate[] {
  const quota = spec.options?.quotaBackendBytes ?? 0; // 0 means etcd's own default
  const size = spec.storage?.size ?? DEFAULT_SIZE;
  const nano = parseQuantity(size);
  if (nano === undefined || BigInt(quota) * 1_000_000_000n <= nano) return [];
  const message = `options.quotaBackendBytes is ${quota}, more than storage.size ${size}: the volume is full before etcd rejects writes, and a member with a full volume crashes. Lower the quota so that 640Mi of the volume are left to the WAL, leave it out, or raise storage.size`;
  return [{ type: QUOTA_FITS_VOLUME, status: 'False', reason: 'QuotaExceedsVolume', message }];
}

type Amounts = Resources['limits'];
const sameAmounts = (is: Amounts = {}, want: Amounts = {}): boolean =>
  sameJson(Object.keys(is).sort(), Object.keys(want).sort()) &&
  Object.entries(is).every(([name, amount]) => sameQuantity(amount, want[name] ?? ''));
/** Compares quantities by value: 1024Mi equals 1Gi. */
const sameResources = (is: Resources = {}, want: Resources = {}): boolean =>
  sameAmounts(is.limits, want.limits) && sameAmounts(is.requests, want.requests) && sameJson(is.claims, want.claims);

/**
 * Maps, as opposed to objects with fields of their own. The types of the earlier operator drop empty lists and maps from the
 * EtcdMembers that it writes: a spec with one would never match its members. Only these: an empty selector, for example, selects
 * everything, and an absent one nothing.
 */
const MAPS = ['labels', 'annotations', 'matchLabels', 'nodeSelector'];

const isEmpty = (value: unknown): boolean =>
  Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;

function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(
    ([key, each]) => !(isEmpty(each) && (Array.isArray(each) || MAPS.includes(key))),
  );
  return Object.fromEntries(kept.map(([key, each]) => [key, withoutEmpty(each)]));
}

/** A whole field of the template: without content it asks for nothing. */
const contentOf = (field: unknown): unknown => {
  const content = withoutEmpty(field);
  return isEmpty(content) ? undefined : content;
};

/** Whether the types of the earlier operator write the same for both. */
const sameContent = (a: unknown, b: unknown): boolean => sameJson(contentOf(a), contentOf(b));

/** Whether two templates mean the same by a field. */
export function sameField(field: keyof Template, is: Template, want: Template): boolean {
  if (field === 'storage') return sameQuantity(is.storage.size, want.storage.size);
  if (field === 'resources') return sameResources(is.resources, want.resources);
  // With `spread`, which the earlier operator does not know, an empty list is the opposite of none: no default is added.
  if (field === 'topologySpreadConstraints' && want.spread !== undefined) return sameJson(is[field], want[field]);
  return sameContent(is[field], want[field]);
}

const displayed = (field: keyof Template, template: Template): string => {
  if (field === 'version') return template.version;
  return field === 'storage' ? String(template.storage.size) : '';
};

/** The template fields of a member that differ from the target. */
const differing = (member: EtcdMember, target: Template): readonly (keyof Template)[] =>
  TEMPLATE_FIELDS.filter((field) => !sameField(field, member.spec, target));

export const isUpToDate = (m: MemberView, target: Template): boolean => differing(m.object, target).length === 0;

/** A change of these restarts no member. */
export const IN_PLACE_FIELDS: readonly (keyof Template)[] = TEMPLATE_FIELDS.filter(
  (field) => !RESTART_FIELDS.includes(field),
);

/** The template fields that differ from the target in a member, each as a sentence. */
export function unapplied(o: ClusterFacts, fields: readonly (keyof Template)[] = TEMPLATE_FIELDS): readonly string[] {
  const target = wanted(o);
  return fields.flatMap((field) => {
    const behind = o.members.filter((m) => !sameField(field, m.object.spec, target));
    if (behind.length === 0) return [];
    const name = field === 'storage' ? 'storage.size' : field;
    const want = displayed(field, target);
    const have = behind.map((m) =>
      [m.object.metadata.name, displayed(field, m.object.spec)].filter(Boolean).join(' has '),
    );
    return [want === '' ? `${name} (${have.join(', ')})` : `${name} ${want} (${have.join(', ')})`];
  });
}

/** The deadline of a change that starts now. */
export const progressDeadline = (o: ClusterFacts): string =>
  iso(o.now + (o.cluster.spec.progressDeadlineSeconds ?? DEFAULT_PROGRESS_DEADLINE_SECONDS) * 1000);
