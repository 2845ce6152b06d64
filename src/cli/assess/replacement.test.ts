import { expect, test } from 'vitest';
import { facts, member, NAME } from '../../../test/support/builders/plugin.ts';
import { replacementRefusal } from './replacement.ts';

const failed = { is: 'failed', message: 'refused' } as const;

test.each([
  ['one of three healthy members can be replaced', facts(), NAME(2), undefined],
  [
    'of two healthy members that are left, only the unhealthy one',
    facts({ members: [member(1), member(2), member(3, { answer: failed })] }),
    NAME(3),
    undefined,
  ],
  [
    'a healthy one that the quorum needs is refused',
    facts({ members: [member(1), member(2), member(3, { answer: failed })] }),
    NAME(2),
    'no quorum would remain',
  ],
  ['of a suspended cluster, none', facts({ spec: { suspend: true } }), NAME(1), 'suspended'],
  ['an only member that serves', facts({ members: [member(1)] }), NAME(1), undefined],
  ['without a response, none', facts({ list: { is: 'notAsked', message: 'x' } }), NAME(1), 'could not be asked'],
])('%s', (_, given, name, sentence) => {
  const refusal = replacementRefusal(given, name);
  if (sentence === undefined) expect(refusal).toBeUndefined();
  else expect(refusal).toContain(sentence);
});
