import { expect, test } from 'vitest';
import { agentContainer, secretFiles } from './agent-pod.ts';
import type { Task } from './agent-task.ts';

/** What Kubernetes makes of a value, as far as it needs no other variable. */
const expanded = (value: string): string => value.replaceAll('$$', () => '$');

test('what a user wrote reaches the agent as it is, whatever Kubernetes does with dollars', () => {
  const task: Task = {
    task: 'drill',
    from: { kind: 'pvc', root: '/r' },
    key: 'a$(HOME)/$$b/$',
    encrypted: false,
    version: '3.6.16',
  };
  const { env } = agentContainer({ name: 'n', image: 'i', task, mounts: [] });
  const value = env?.[0]?.value ?? '';
  expect(value.replaceAll('$$', '')).not.toContain('$');
  expect(JSON.parse(expanded(value))).toEqual(task);
});

test('a Secret that is not there does not keep the agent from saying so', () => {
  expect(secretFiles('n', 's', '/m', ['k']).volumes).toMatchObject([{ secret: { secretName: 's', optional: true } }]);
});
