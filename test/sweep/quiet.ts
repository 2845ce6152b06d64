/** At rest the operator writes nothing. */
import type { Passed } from '../support/faults/proxy.ts';
import { pause } from '../support/servers/processes.ts';
import type { Rig } from './rig.ts';

const QUIET_MS = 3_000;
/** Message-only changes of a status are coalesced for half a minute. */
const COALESCED_MS = 35_000;

/** The writes since then. */
export async function quiet(rig: Rig, forMs = QUIET_MS): Promise<readonly Passed[]> {
  await pause(500); // a response may be in flight
  const before = rig.writes().length;
  await pause(forMs);
  return rig.writes().slice(before);
}

export const isTold = ({ resource }: Passed): boolean => resource.endsWith('/status');

/** At rest the operator writes nothing. Coalesced status writes, which come late, belong to the end state too. */
export async function quietInTheEnd(rig: Rig, mayBeLate: (write: Passed) => boolean): Promise<readonly string[]> {
  const until = performance.now() + COALESCED_MS;
  for (;;) {
    const since = await quiet(rig);
    if (since.length === 0) return [];
    if (since.every(mayBeLate) && performance.now() < until) continue;
    const named = since.map((c) => `${c.verb} ${c.resource} ${c.name} ${c.code}`);
    return [`I9: at rest it still writes: ${named.slice(0, 5).join(', ')}`];
  }
}
