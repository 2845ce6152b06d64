import { expect, test } from 'vitest';
import { EventLedger, MAX_SIMILAR, REPORT_MS, SERIES_MS } from './event-ledger.ts';

const what = (note = 'the Pod was deleted', reason = 'Lost', uid = 'u') => ({
  uid,
  type: 'Warning' as const,
  reason,
  note,
});

/** Carries out what the ledger decides, as the recorder does. */
function enter(ledger: EventLedger, occurrence: ReturnType<typeof what>, now: number): string {
  const entry = ledger.enter(occurrence, now);
  if (entry.do === 'create') ledger.created(entry.key, `event-${now}`, now);
  return entry.do === 'count'
    ? `count ${entry.name} ${entry.count}`
    : entry.do === 'create'
      ? `create ${entry.note}`
      : 'hold';
}

test('equal notes are one Event; its count is updated every 30 s; after ten minutes a new Event is created', () => {
  const ledger = new EventLedger();
  expect(enter(ledger, what(), 0)).toBe('create the Pod was deleted');
  expect(enter(ledger, what(), 1_000)).toBe('hold');
  expect(enter(ledger, what(), REPORT_MS)).toBe('count event-0 3');
  expect(enter(ledger, what(), REPORT_MS + 1)).toBe('hold');
  expect(enter(ledger, what(), SERIES_MS)).toBe('create the Pod was deleted');
});

test('the same note about another object is another Event', () => {
  const ledger = new EventLedger();
  enter(ledger, what('x', 'r', 'one'), 0);
  expect(enter(ledger, what('x', 'r', 'two'), 0)).toBe('create x');
});

test('too many different notes for one reason are combined into one Event', () => {
  const ledger = new EventLedger();
  for (let n = 0; n < MAX_SIMILAR; n++) expect(enter(ledger, what(`try ${n}`), n)).toBe(`create try ${n}`);
  expect(enter(ledger, what('try 98'), 50)).toBe('create (combined from similar events): try 98');
  expect(enter(ledger, what('try 99'), 51)).toBe('hold');
  expect(enter(ledger, what('try 100'), 50 + REPORT_MS)).toBe('count event-50 3');
  expect(enter(ledger, what('another reason', 'Found'), 52)).toBe('create another reason');
});

test('an Event that no longer exists is created again', () => {
  const ledger = new EventLedger();
  enter(ledger, what(), 0);
  const entry = ledger.enter(what(), REPORT_MS);
  if (entry.do === 'count') ledger.lost(entry.key);
  expect(enter(ledger, what(), REPORT_MS + 1)).toBe('create the Pod was deleted');
});

test('memory is bounded', () => {
  const ledger = new EventLedger();
  for (let n = 0; n < 10_000; n++) enter(ledger, what(`note ${n}`, 'r', `u${n}`), n);
  expect(ledger.size).toBeLessThanOrEqual(4_000);
});
