/** Alarms: which member raised which, and the requests that they block. */
import type { Alarm, AlarmEntry } from '../../../src/etcd/maintenance.ts';

export class Alarms {
  #raised: readonly AlarmEntry[] = [];
  /** Before 3.6 the alarm that was raised or disarmed last decides what is blocked, whatever other alarms exist. */
  #last: Alarm | undefined;

  get all(): readonly AlarmEntry[] {
    return this.#raised;
  }

  raise(entry: AlarmEntry): readonly AlarmEntry[] {
    const first = !this.#raised.some(({ alarm }) => alarm === entry.alarm);
    if (!this.#raised.some((raised) => same(raised, entry))) this.#raised = [...this.#raised, entry];
    if (first) this.#last = entry.alarm;
    return [entry];
  }

  disarm(entry: AlarmEntry): readonly AlarmEntry[] {
    const rest = this.#raised.filter((raised) => !same(raised, entry));
    if (rest.length === this.#raised.length) return [];
    this.#raised = rest;
    if (!rest.some(({ alarm }) => alarm === entry.alarm)) this.#last = undefined;
    return [entry];
  }

  /** The alarm that blocks changes; NOSPACE blocks only changes that grow the database. */
  stops(minor: number): Alarm | undefined {
    if (minor < 6) return this.#last;
    const raised = (alarm: Alarm): boolean => this.#raised.some((entry) => entry.alarm === alarm);
    return raised('corrupt') ? 'corrupt' : raised('noSpace') ? 'noSpace' : undefined;
  }
}

const same = (a: AlarmEntry, b: AlarmEntry): boolean => a.memberId === b.memberId && a.alarm === b.alarm;
