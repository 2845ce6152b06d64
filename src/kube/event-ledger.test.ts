import { expect, test } from 'vitest';
import { EventLedger, MAX_SIMILAR, SERIES_MS, TELL_MS } from './event-ledger.ts';

const what = (note = 'the Pod is gone', reason = 'Lost', uid = 'u') => ({
  uid,
  type: 'Warning' as const,
  reason,
  note,
});

/** Writes what the ledger asks for, as the recorder does. */
function tell(ledger: EventLedger, happening: ReturnType<typeof what>, now: number): string {
  const entry = ledger.enter(happening, now);
  if (entry.do === 'create') ledger.created(entry.key, `event-${now}`, now);
  return entry.do === 'count'
    ? `count ${entry.name} ${entry.count}`
    : entry.do === 'create'
      ? `create ${entry.note}`
      : 'hold';
}

test('the same words are one Event; its count is told now and then; after ten minutes it is another story', () => {
  const ledger = new EventLedger();
  expect(tell(ledger, what(), 0)).toBe('create the Pod is gone');
  expect(tell(ledger, what(), 1_000)).toBe('hold');
  expect(tell(ledger, what(), TELL_MS)).toBe('count event-0 3');
  expect(tell(ledger, what(), TELL_MS + 1)).toBe('hold');
  expect(tell(ledger, what(), SERIES_MS)).toBe('create the Pod is gone');
});

test('the same words about another object are another Event', () => {
  const ledger = new EventLedger();
  tell(ledger, what('x', 'r', 'one'), 0);
  expect(tell(ledger, what('x', 'r', 'two'), 0)).toBe('create x');
});

test('too many different words for one reason become one Event', () => {
  const ledger = new EventLedger();
  for (let n = 0; n < MAX_SIMILAR; n++) expect(tell(ledger, what(`try ${n}`), n)).toBe(`create try ${n}`);
  expect(tell(ledger, what('try 98'), 50)).toBe('create (combined from similar events): try 98');
  expect(tell(ledger, what('try 99'), 51)).toBe('hold');
  expect(tell(ledger, what('try 100'), 50 + TELL_MS)).toBe('count event-50 3');
  expect(tell(ledger, what('another reason', 'Found'), 52)).toBe('create another reason');
});

test('an Event that is not there any more is written anew', () => {
  const ledger = new EventLedger();
  tell(ledger, what(), 0);
  const entry = ledger.enter(what(), TELL_MS);
  if (entry.do === 'count') ledger.lost(entry.key);
  expect(tell(ledger, what(), TELL_MS + 1)).toBe('create the Pod is gone');
});

test('memory is bounded', () => {
  const ledger = new EventLedger();
  for (let n = 0; n < 10_000; n++) tell(ledger, what(`note ${n}`, 'r', `u${n}`), n);
  expect(ledger.size).toBeLessThanOrEqual(4_000);
});
