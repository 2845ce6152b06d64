/** Checks of what surrounds the members: certificates, backups, the PDB, the operator, permissions. */
import { findCondition } from '../../domain/conditions.ts';
import { CRDS_CURRENT } from '../../domain/crds-current.ts';
import { sentenceOf } from '../../pki/findings.ts';
import { recoveryPoint, scheduleRow } from './backups.ts';
import { type Check, found, ok } from './finding.ts';

const DAY_MS = 86_400_000;
const SOON_MS = 7 * DAY_MS;

export const checkCertificates: Check = ({ facts: { cluster, certificates, now } }) => {
  if (cluster.spec.tls === undefined)
    return found(
      'certificates',
      'advice',
      'clients and peers are not encrypted',
      'TLS can only be chosen when a cluster is created',
    );
  if (!certificates || certificates.unreadable)
    return found('certificates', 'unknown', 'the Secrets with the certificates could not be read');
  const problems = certificates.certificates.flatMap(({ findings }) => findings.map(sentenceOf));
  const expired = certificates.certificates.filter(({ notAfter }) => (notAfter ?? Infinity) <= now);
  if (problems.length > 0 || expired.length > 0)
    return found(
      'certificates',
      expired.length > 0 ? 'problem' : 'advice',
      [...new Set(problems)].join('; '),
      'see the message; the operator continues by itself',
    );
  const soon = certificates.certificates.filter(({ notAfter = Infinity }) => notAfter - now < SOON_MS);
  if (soon.length > 0)
    return found(
      'certificates',
      'advice',
      `${soon.map(({ need }) => need.secret).join(', ')} expires within a week`,
      'renew it, or see why it is not renewed',
    );
  return ok('certificates', `${certificates.certificates.length} certificates are valid for more than a week`);
};

export const checkBackups: Check = ({ facts }) => {
  if (facts.unread.some(({ what }) => what === 'snapshots' || what === 'schedules'))
    return found('backups', 'unknown', 'snapshots and schedules could not be read');
  const point = recoveryPoint(facts);
  const make = 'create an EtcdSnapshotSchedule with retention and restore drills';
  if (point === undefined) return found('backups', 'problem', 'no snapshot of this cluster is complete', make);
  const rows = facts.schedules.map(scheduleRow);
  if (rows.length === 0) return found('backups', 'advice', 'snapshots are taken by hand only', make);
  const stale = findCondition(facts.cluster.status?.conditions, 'BackupFresh');
  if (stale?.status === 'False') return found('backups', 'problem', stale.message, 'see the last failed EtcdSnapshot');
  const suspended = rows.filter((row) => row.suspended);
  if (suspended.length === rows.length)
    return found('backups', 'advice', 'every schedule is suspended', 'set spec.suspend of the schedule to false');
  const failed = rows.find(({ drill }) => drill?.succeeded === false);
  if (failed)
    return found(
      'backups',
      'problem',
      `the last restore drill of ${failed.name} failed: ${failed.drill?.reason ?? ''}`,
      'do not rely on this backup: see the log of its Job',
    );
  if (!rows.some(({ drill }) => drill))
    return found(
      'backups',
      'advice',
      'no restore drill has proven that a snapshot can be restored',
      'set spec.drill of the schedule',
    );
  return ok('backups', 'a schedule stores snapshots, and a restore drill has restored one');
};

export const checkPdb: Check = ({ facts: { cluster, pdb, unread } }) => {
  if (unread.some(({ what }) => what === 'the PodDisruptionBudget'))
    return found('drains', 'unknown', 'the PodDisruptionBudget could not be read');
  if (cluster.spec.podDisruptionBudget?.enabled === false)
    return found(
      'drains',
      'advice',
      'the PodDisruptionBudget is disabled: a node drain may cost the quorum',
      'enable it',
    );
  if (!pdb)
    return cluster.spec.replicas === 0
      ? ok('drains', 'the cluster is paused')
      : found(
          'drains',
          'advice',
          'there is no PodDisruptionBudget: a node drain may cost the quorum',
          'see what the operator reports',
        );
  if ((pdb.status?.disruptionsAllowed ?? 0) === 0)
    return found(
      'drains',
      'advice',
      'no Pod may be evicted now: a node drain waits',
      'repair the members first; one of one member never may',
    );
  return ok('drains', 'a node drain evicts one member at a time');
};

export const checkOperator: Check = ({ facts: { cluster } }) => {
  const { spec, status, metadata } = cluster;
  if (spec.suspend)
    return found('operator', 'advice', 'it is suspended and repairs nothing', 'set spec.suspend to false');
  const observed = findCondition(status?.conditions, 'Available')?.observedGeneration ?? 0;
  if (observed < (metadata.generation ?? 0))
    return found('operator', 'advice', 'it has not reacted to the last edit of the spec', 'check that its Pod runs');
  const crds = findCondition(status?.conditions, CRDS_CURRENT);
  if (crds?.status === 'False') return found('operator', 'problem', crds.message, 'install the CRDs of its chart');
  const inSync = findCondition(status?.conditions, 'ManagedObjectsInSync');
  if (inSync?.status === 'False') return found('operator', 'advice', inSync.message, 'see docs/operations.md');
  return ok('operator', 'it has reacted to the last edit of the spec');
};

export const checkPermissions: Check = ({ facts: { unread } }) =>
  unread.length === 0
    ? ok('permissions', 'everything could be read')
    : found(
        'permissions',
        'unknown',
        unread.map(({ what, message }) => `${what}: ${message}`).join('; '),
        'ask for these permissions, and run it again',
      );
