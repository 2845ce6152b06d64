/** Whether snapshots can be stored at the destination: tried before the first one is due, and after each edit. */
import type { EtcdSnapshotSchedule, EtcdSnapshotScheduleStatus } from '../../api/etcd-snapshot-schedule.ts';
import type { ConditionUpdate } from '../../domain/conditions.ts';
import { LOCATION_POLL_MS } from '../../domain/timing.ts';
import { hash32 } from '../../lib/hash.ts';
import { present } from '../../lib/present.ts';
import { printable } from '../../lib/printable.ts';
import { iso } from '../../lib/time.ts';
import { probeName } from './build-probe.ts';
import { type JobResult, jobResultOf } from './job-result.ts';
import { type Observed, statusBefore } from './observed.ts';
import { scrubIntervalMs } from './scrubbing.ts';

export const LOCATION_USABLE = 'LocationUsable';

type Location = Pick<EtcdSnapshotScheduleStatus, 'location'>;

/** `versions`: of the objects that the destination refers to. */
export const locationHash = ({ spec }: EtcdSnapshotSchedule, versions: readonly string[]): string =>
  hash32(JSON.stringify([spec.destination, spec.layout, spec.encryption, ...versions]))
    .toString(16)
    .padStart(8, '0');

export function probeResult(o: Observed): JobResult<'probe'> | undefined {
  const { location, object } = o;
  const name = location === undefined ? undefined : probeName(object, location);
  const owned = name === undefined ? undefined : o.jobs.find(({ job }) => job.metadata.name === name);
  return owned && jobResultOf(owned, 'probe', o.now);
}

export function locationHistory(o: Observed): Location {
  const { location: before, lastSuccessful } = statusBefore(o);
  if (o.location === undefined) return {};
  // An upgrade of the operator does not try a thousand stores at once that have long taken snapshots.
  if (!before && lastSuccessful) return { location: { checked: o.location, time: lastSuccessful.time } };
  const ended = probeResult(o);
  if (!ended || ended.is === 'running') return {};
  const known = { checked: o.location, time: iso(ended.at) };
  if (ended.is === 'failed') return { location: { ...known, reason: ended.reason, message: ended.message } };
  const { cannotList, cannotDelete } = ended.result;
  const readable = (text: string | undefined) => text && printable(text);
  return {
    location: { ...known, ...present({ cannotList: readable(cannotList), cannotDelete: readable(cannotDelete) }) },
  };
}

/** A permission that is corrected in the store's own policy changes nothing that the operator could notice. */
const isWrong = (o: Observed, location: Location['location']): boolean =>
  location !== undefined && (location.reason !== undefined || lackOf(o.object, location) !== undefined);

/** A failed one is created again when its TTL has deleted it. */
export function isProbeDue(o: Observed): boolean {
  const { location } = statusBefore(o);
  const isKnown = location?.checked === o.location && !isWrong(o, location);
  return o.location !== undefined && !isKnown && probeResult(o) === undefined;
}

export function locationCondition(o: Observed, { location }: Location): readonly ConditionUpdate[] {
  const condition = (
    status: ConditionUpdate['status'],
    reason: string,
    message: string,
  ): readonly ConditionUpdate[] => [{ type: LOCATION_USABLE, status, reason, message }];
  if (o.notPermitted !== undefined) return condition('False', 'ReferenceNotPermitted', o.notPermitted);
  if (o.location === undefined) return [];
  if (location?.checked !== o.location) return condition('Unknown', 'Checking', progress(o));
  if (location.reason !== undefined)
    return condition(
      'False',
      location.reason,
      `no snapshot can be stored: ${location.message}. It is tried again when the destination or its Secret changes, and every hour`,
    );
  const lack = lackOf(o.object, location);
  return lack === undefined
    ? condition('True', 'LocationUsable', `snapshots can be stored, as was found at ${location.time}`)
    : condition('False', 'AccessDenied', lack);
}

/** What the schedule needs beside storing. */
function lackOf(
  { spec, ...schedule }: EtcdSnapshotSchedule,
  { cannotList, cannotDelete }: NonNullable<Location['location']>,
): string | undefined {
  const isScrubbed = scrubIntervalMs({ spec, ...schedule }) !== undefined;
  if (spec.retention && cannotDelete !== undefined)
    return `snapshots can be stored, and retention cannot delete any: ${cannotDelete}`;
  return (spec.retention || isScrubbed) && cannotList !== undefined
    ? `snapshots can be stored, and retention and scrubs cannot list them: ${cannotList}`
    : undefined;
}

function progress(o: Observed): string {
  const result = probeResult(o);
  if (result?.is === 'running') return result.message;
  if (o.operatorImage === '') return 'the operator image is not configured';
  return o.cluster ? 'the destination was not tried yet' : 'the destination is tried when its EtcdCluster exists';
}

/** Secrets are not watched: while something is wrong, a correction is noticed in time. */
export const locationPollMs = (o: Observed): number =>
  isWrong(o, locationHistory(o).location ?? statusBefore(o).location) ? LOCATION_POLL_MS : Number.POSITIVE_INFINITY;
