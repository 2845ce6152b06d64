/** Alarms: who has raised which, and what may not be done for as long as they last. */
import type { Alarm, AlarmEntry } from '../../../src/etcd/maintenance.ts';

export class Alarms {
  #raised: readonly AlarmEntry[] = [];
  /** Before 3.6 the last alarm to begin or end decides what is stopped, whatever others there are. */
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

  /** The reason to change nothing; growing alone is what the alarm for space stops. */
  stops(minor: number): Alarm | undefined {
    if (minor < 6) return this.#last;
    const raised = (alarm: Alarm): boolean => this.#raised.some((entry) => entry.alarm === alarm);
    return raised('corrupt') ? 'corrupt' : raised('noSpace') ? 'noSpace' : undefined;
  }
}

const same = (a: AlarmEntry, b: AlarmEntry): boolean => a.memberId === b.memberId && a.alarm === b.alarm;
