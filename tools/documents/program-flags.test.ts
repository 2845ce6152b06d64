/** A flag that a program does not have is noticed; `test/integration/documents.test.ts` asks the real programs for their help. */
import { expect, test } from 'vitest';
import { unknownFlags } from './program-flags.ts';

const HELP = `Options:
    -n, --namespace='':
        The namespace.
        --all=false:
        All of them.
  -w, --watch   go on
`;
const help = (): Promise<string> => Promise.resolve(HELP);
const unknown = (line: string): Promise<readonly string[]> =>
  unknownFlags(line.split(' '), ['get', 'create secret generic'], help);

test.each([
  ['kubectl get pods -n ns --all --watch=true', 0],
  ['kubectl -n ns get pods -w', 0],
  ['kubectl create secret generic x -n ns', 0],
  ['kubectl get pods -- etcdctl --endpoints=x', 0],
  ['kubectl get pods --every', 1],
  ['kubectl get pods -A --every', 2],
  ['kubectl fetch pods', 1],
])('%s: %d', async (line, count) => expect(await unknown(line)).toHaveLength(count));
