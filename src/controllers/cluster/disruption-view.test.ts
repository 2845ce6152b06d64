/** On random clusters, the requirements of `domain/disruption.ts` answer as the checks that they replace. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { clusters } from '../../../test/support/builders/members-arbitrary.ts';
import { rotationBlockedBy } from './credentials/ca-rotation.ts';
import { canMount, unreadableSecrets } from './credentials/certificates.ts';
import { learnersOf, removalBlockedBy, votersOf } from './disruption.ts';
import { blockedBy, quorumView } from './disruption-view.ts';
import { joining } from './joining.ts';
import { entriesOf, entryOf, memberOf, nameOf, type Observed } from './observed.ts';
import { areAllWell, memberRestartBlockedBy } from './refused-changes.ts';
import { lossOf, blockedBy as replacementBlockedBy } from './replacement.ts';
import { isInMemory } from './rollout/restart.ts';
import { blocked } from './spec-drift.ts';

/** The addition: no EtcdMember is deleted before it has the deletionPolicy of its cluster. */
function policy(o: Observed, id: string | undefined): string | undefined {
  const m = o.members.find((each) => entryOf(o, each)?.id === id);
  return m && m.object.spec.deletionPolicy !== o.cluster.spec.deletionPolicy
    ? `EtcdMember ${nameOf(m)} does not have the deletionPolicy of its cluster yet`
    : undefined;
}
const every = (name: string, check: (o: Observed) => void): void =>
  test(name, () => {
    fc.assert(fc.property(clusters, check), { numRuns: 1_000 });
  });

every('removals', (o) => {
  for (const entry of entriesOf(o) ?? []) {
    const old = removalBlockedBy(o, entry);
    expect(blockedBy(o, entry.id, 'remove')?.message).toBe(old);
    const now = blockedBy(o, entry.id, 'scaleDown');
    expect(now?.message).toBe(old ?? policy(o, entry.id));
  }
  for (const m of joining(o)) {
    const entry = entryOf(o, m);
    if (!entry || entry.name !== '') continue;
    expect(blockedBy(o, entry.id, 'discardJoiner')?.message).toBe(removalBlockedBy(o, entry) ?? policy(o, entry.id));
  }
});

every('replacements', (o) => {
  for (const m of o.members) {
    if (lossOf(o, m) === undefined) continue;
    const old = replacementBlockedBy(o, m);
    expect(blockedBy(o, entryOf(o, m)?.id, 'replace')?.message).toBe(old ?? policy(o, entryOf(o, m)?.id));
  }
});

every('restarts of an outdated member', (o) => {
  const mounts = unreadableSecrets(o) === undefined && canMount(o);
  const plain = votersOf(o).every((e) => memberOf(o, e)) && quorumView(o).joiners.length === 0 && entriesOf(o);
  const stuck = quorumView(o).joiners.some(({ neverStartedForMs = 0 }) => neverStartedForMs >= 600_000);
  for (const m of o.members) {
    const old = rotationBlockedBy(o, m);
    const now = blockedBy(o, entryOf(o, m)?.id, 'restart')?.message;
    if (plain) {
      if (mounts || old !== undefined)
        expect(now).toBe(old ?? (isInMemory(m) ? policy(o, entryOf(o, m)?.id) : undefined));
      else expect(now).toMatch(/Secrets|certificates/);
    } else if (stuck) {
      expect(old).toBeDefined();
      if (now === undefined) {
        expect(votersOf(o).length - Number(entryOf(o, m)?.isLearner === false)).toBeGreaterThan(
          entryOf(o, m)?.isLearner === false ? votersOf(o).length / 2 : 0,
        );
        expect(o.members.filter((other) => entryOf(o, other)?.isLearner === false && !other.self)).toEqual([]);
      }
    } else {
      expect(now).toBeDefined();
      if (learnersOf(o).length > 0) expect(old).toBeDefined();
    }
  }
});

every('restarts for new connections', (o) => {
  for (const entry of votersOf(o)) {
    const m = memberOf(o, entry);
    if (!m) continue;
    const old = memberRestartBlockedBy(o, m);
    const now = blockedBy(o, entry.id, 'reconnect')?.message;
    const order = blocked(o) !== undefined;
    if (areAllWell(o) && !order) expect(now).toBe(old);
    else if (now === undefined) expect(old).toBeUndefined();
    else if (order) expect(old).toBeDefined();
  }
});
