import { expect, test } from 'vitest';
import type { Explanation } from '../assess/explanation.ts';
import { explanationText } from './explanation.ts';

const explanation: Explanation = {
  decision: { rule: 'removeLeaving', message: 'waits: 2 of 3 voters are healthy, and both are needed' },
  stages: [
    { stage: 'stop', asked: ['a', 'b'], answers: [] },
    {
      stage: 'upkeep',
      asked: ['services'],
      answers: [
        { rule: 'services', message: 'the Service differs', steps: ['patch Service db', 'patch Service db-client'] },
      ],
    },
    {
      stage: 'membership',
      asked: ['removeLeaving'],
      answers: [
        {
          rule: 'removeLeaving',
          message:
            'waits: 2 of 3 voters are healthy, and both are needed; the EtcdMember db-aaaa3 stays until another voter has joined',
          steps: [],
        },
      ],
    },
    { stage: 'maintenance', asked: ['restart'], skipped: 'the membership is not at rest', answers: [] },
  ],
  facts: ['etcd lists 3 members, 0 of them learners', 'db-aaaa1: voter; Pod ready; etcd 3.6.16 responds'],
  limits: ['nodes, which count as Ready: you lack the permission to list nodes in the whole Kubernetes cluster'],
};

test('the whole screen', async () => {
  const text = explanationText({ colour: false, width: 100 }, 'Why ns/db', explanation);
  await expect(`${text}\n`).toMatchFileSnapshot('golden/explanation.txt');
  expect(text.split('\n').filter((line) => line.length > 100)).toEqual([]);
});
