import { describe, expect, test } from 'vitest';
import { complete, connectionIn, separated } from './completion.ts';
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
    expect(words('completion', 'z')).toEqual(['zsh']);
    expect(list('status', '-n', '')).toBe('namespace');
    expect(list('snapshot', 'create', 'db', '--schedule', 'h')).toBe('schedule');
  });
  test('values after a =, in one word or in the three that bash makes of it', () => {
    expect(words('status', '--output=js')).toEqual(['json']);
    expect(words('status', '--output', '=', 'js')).toEqual(['json']);
    expect(words('status', '--output', '=')).toEqual(['json', 'yaml', 'wide']);
    expect(list('--namespace=ns', 'status', '')).toBe('cluster');
    expect(connectionIn(separated(['--namespace', '=', 'ns', 'status', '']))).toEqual({ namespace: 'ns' });
  });
  test.each([
    [true, ['snapshot', 'download', 'db', '']],
    [true, ['report', 'db', '--out', '/etc']],
    [true, ['status', '--kubeconfig=']],
    [undefined, ['status', '']],
    [undefined, ['snapshot', '']],
  ])('names of files: %s for %j', (files, typed) => expect(complete(root, typed).files).toBe(files));
  test.each([
    ['cluster', ['status', '']],
    ['cluster', ['doctor', 'd']],
    ['cluster', ['-n', 'ns', 'status', '--watch', '']],
    ['member', ['replace', '']],
    ['member', ['move-leader', 'db', '--to', '']],
    ['schedule', ['schedule', 'run', '']],
    ['snapshot', ['snapshot', 'restore', '']],
    ['cluster', ['snapshot', 'restore', 's', '']],
    [undefined, ['upgrade', 'db', '--to', '']],
    ['cluster', ['upgrade', '']],
    [undefined, ['scale', 'db', '']],
    [undefined, ['etcdctl', 'db', '--', '']],
  ])('names of a %s for %j', (kind, typed) => expect(list(...typed)).toBe(kind));
  test('names are listed with the connection of the words before', () => {
    expect(connectionIn(['-n', 'ns', '--context=c', 'status', ''])).toEqual({ namespace: 'ns', context: 'c' });
    expect(connectionIn(['status', '-n', ''])).toEqual({});
  });
});
