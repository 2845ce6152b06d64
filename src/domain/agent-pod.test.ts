import { expect, test } from 'vitest';
import { agentContainer, secretFiles } from './agent-pod.ts';
import type { Task } from './agent-task.ts';

/** How the kubelet expands a value that refers to no other variable. */
const expanded = (value: string): string => value.replaceAll('$$', () => '$');

test('values of the user reach the agent unchanged although the kubelet expands $(VAR)', () => {
  const task: Task = {
    task: 'drill',
    from: { kind: 'pvc', root: '/r' },
    key: 'a$(HOME)/$$b/$',
    encrypted: false,
    bumpRevision: 0,
    version: '3.6.16',
  };
  const { env } = agentContainer({ name: 'n', image: 'i', task, mounts: [] });
  const value = env?.[0]?.value ?? '';
  expect(value.replaceAll('$$', '')).not.toContain('$');
  expect(JSON.parse(expanded(value))).toEqual(task);
});

test('a missing Secret does not keep the agent from starting and reporting it', () => {
  expect(secretFiles('n', 's', '/m', ['k']).volumes).toMatchObject([{ secret: { secretName: 's', optional: true } }]);
});
