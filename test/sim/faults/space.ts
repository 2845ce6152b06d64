/** Clients write until the database has reached its quota. */
import { groupOf } from '../world/facts.ts';
import type { World } from '../world/world.ts';
import type { Deeds } from './stage.ts';

export const QUOTA = 16 * 2 ** 20;
/** As many as fill the database, of one key: its history is what takes the space. */
const VALUES = 20;
const VALUE = new Uint8Array(2 ** 20);

const outgrown = new WeakMap<World, number>();
const LATELY_MS = 60_000;
export const outgrownLately = (world: World): boolean =>
  world.ground.timeline.now - (outgrown.get(world) ?? Number.NEGATIVE_INFINITY) < LATELY_MS;

export function outgrow(world: World): boolean {
  const group = groupOf(world);
  if (group?.leader === undefined || group.state.alarms.all.length > 0) return false;
  for (let n = 0; n < VALUES; n++) group.commit(({ keys }) => keys.put('large', VALUE));
  outgrown.set(world, world.ground.timeline.now);
  return true;
}

export const spaceDeeds: Deeds<'outgrow'> = { outgrow: ({ world }) => outgrow(world) };
