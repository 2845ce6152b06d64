import { describe, expect, test } from 'vitest';
import { complete, connectionIn } from './completion.ts';
import { program } from './program.ts';

const root = program(
  {
    run: () => Promise.resolve(),
    print: () => undefined,
    rules: { explain: () => Promise.resolve(undefined), checkVersion: () => Promise.resolve(undefined) },
  },
  '1',
);
const words = (...typed: readonly string[]) => complete(root, typed).candidates.map(({ word }) => word);
const list = (...typed: readonly string[]) => complete(root, typed).list;

describe('after the key Tab', () => {
  test('commands that begin with the letters', () => {
    expect(words('st')).toEqual(['status']);
    expect(words('snapshot', '')).toEqual(['create', 'list', 'download', 'restore']);
    expect(words('-n', 'ns', 'alarm', 'd')).toEqual(['disarm']);
  });
  test('flags of the command and of all commands', () => {
    expect(words('status', '--a')).toEqual(['--all-namespaces', '--as', '--as-group']);
  });
  test('values of flags', () => {
    expect(words('status', '-o', '')).toEqual(['json', 'yaml', 'wide']);
    expect(list('status', '-n', '')).toBe('namespace');
    expect(list('snapshot', 'create', 'db', '--schedule', 'h')).toBe('schedule');
  });
  test.each([
    ['cluster', ['status', '']],
    ['cluster', ['doctor', 'd']],
    ['cluster', ['-n', 'ns', 'status', '--watch', '']],
    ['member', ['replace', '']],
    ['member', ['move-leader', 'db', '--to', '']],
    ['schedule', ['schedule', 'run', '']],
    ['snapshot', ['snapshot', 'restore', '']],
    ['cluster', ['snapshot', 'restore', 's', '']],
    [undefined, ['scale', 'db', '']],
    [undefined, ['etcdctl', 'db', '--', '']],
  ])('names of a %s for %j', (kind, typed) => expect(list(...typed)).toBe(kind));
  test('names are listed with the connection of the words before', () => {
    expect(connectionIn(['-n', 'ns', '--context=c', 'status', ''])).toEqual({ namespace: 'ns', context: 'c' });
    expect(connectionIn(['status', '-n', ''])).toEqual({});
  });
});
