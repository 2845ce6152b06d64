/** The recent past. An operator reports what it observed, which may be a little while ago, and never longer. */
import { type Group, voters } from '../model/etcd-group.ts';
import { groupOf, hasQuorum, isReachable, membersOf, readyVoters } from './facts.ts';
import type { World } from './world.ts';

interface Moment {
  readonly at: number;
  readonly quorum: boolean;
  readonly led: boolean;
  readonly ready: number;
  readonly voters: number;
  readonly learners: number;
  readonly objects: number;
}

/** The longest duration of a reconcile. */
const PASS_MS = 30_000;
const SLACK_MS = 10_000;
const LONGEST_MS = 150_000;

export class History {
  readonly #world: World;
  #moments: Moment[] = [];
  readonly #reachable = new Map<bigint, number>();
  readonly #led = new Set<bigint>();
  /** Since when and for how long caches lagged behind, or a process was frozen. */
  #lateUntil = 0;
  #lateMs = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** Until then, what an operator knows may be this much older than usual. */
  late(ms: number): void {
    this.#lateUntil = Math.max(this.#lateUntil, this.#world.ground.timeline.now + ms + PASS_MS);
    this.#lateMs = Math.max(this.#lateMs, ms);
  }

  get windowMs(): number {
    const late = this.#world.ground.timeline.now < this.#lateUntil ? this.#lateMs : 0;
    return PASS_MS + SLACK_MS + late;
  }

  record(): void {
    const world = this.#world;
    const at = world.ground.timeline.now;
    const group = groupOf(world);
    const moment: Moment = {
      at,
      quorum: group !== undefined && hasQuorum(world, group),
      led: group?.leader !== undefined,
      ready: group ? readyVoters(world, group) : 0,
      voters: group ? voters(group).length : 0,
      learners: group ? group.members.size - voters(group).length : 0,
      objects: membersOf(world).length,
    };
    if (group) this.#seeMembers(group, at);
    const last = this.#moments.at(-1);
    if (last && same(last, moment)) return;
    this.#moments.push(moment);
    if (this.#moments.length > 400)
      this.#moments = this.#moments.filter((_, i) => (this.#moments[i + 1]?.at ?? at) > at - LONGEST_MS);
  }

  #seeMembers(group: Group, at: number): void {
    if (group.leader !== undefined) this.#led.add(group.leader);
    for (const id of group.members.keys()) if (isReachable(this.#world, group, id)) this.#reachable.set(id, at);
  }

  /** Whether it held at some moment of the window, or shortly before; each moment lasts until the next. */
  lately(so: (moment: Moment) => boolean, beforeMs = 0): boolean {
    const since = this.#world.ground.timeline.now - this.windowMs - beforeMs;
    return this.#moments.some((m, i) => (this.#moments[i + 1]?.at ?? Number.POSITIVE_INFINITY) >= since && so(m));
  }

  wasReachableLately = (id: bigint): boolean =>
    (this.#reachable.get(id) ?? Number.NEGATIVE_INFINITY) >= this.#world.ground.timeline.now - this.windowMs;

  everLed = (id: bigint): boolean => this.#led.has(id);
}

const same = (a: Moment, b: Moment): boolean =>
  a.quorum === b.quorum &&
  a.led === b.led &&
  a.ready === b.ready &&
  a.voters === b.voters &&
  a.learners === b.learners &&
  a.objects === b.objects;
