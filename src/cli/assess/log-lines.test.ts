import { describe, expect, test } from 'vitest';
import { inOrder, memberLine, operatorLine } from './log-lines.ts';

const AT = '2026-03-01T00:00:01.5Z';
const keys = new Set(['ns/db', 'ns/db-a']);

describe('merged logs', () => {
  test('a line of etcd is its message and its fields', () => {
    const entry = { level: 'warn', ts: AT, caller: 'x.go:1', msg: 'slow fdatasync', took: '1s' };
    expect(memberLine('db-a', `${AT} ${JSON.stringify(entry)}`)).toEqual({
      at: Date.parse(AT),
      source: 'db-a',
      level: 'warn',
      text: 'slow fdatasync took=1s',
    });
    expect(memberLine('db-a', `${AT} plain {text`)?.text).toBe('plain {text');
    expect(memberLine('db-a', 'no time')).toBeUndefined();
  });
  test("a decision of the operator is its rule, its message and its steps; other clusters' are left out", () => {
    const decision = {
      level: 'info',
      controller: 'cluster',
      key: 'ns/db',
      rule: 'promote',
      message: 'm',
      steps: ['a'],
    };
    expect(operatorLine(keys, `${AT} ${JSON.stringify(decision)}`)?.text).toBe('cluster db: promote: m [a]');
    expect(operatorLine(keys, `${AT} ${JSON.stringify({ ...decision, key: 'ns/other' })}`)).toBeUndefined();
    const failed = { level: 'warn', controller: 'member', key: 'ns/db-a', rule: 'r', error: 'E', msg: 'failed' };
    expect(operatorLine(keys, `${AT} ${JSON.stringify(failed)}`)).toMatchObject({
      level: 'warn',
      text: 'member db-a: r: failed: E',
    });
  });
  test('lines are in the order of their times', () => {
    const line = (at: number) => ({ at, source: 's', level: 'info' as const, text: '' });
    expect(inOrder([line(2), line(1)]).map(({ at }) => at)).toEqual([1, 2]);
  });
});
