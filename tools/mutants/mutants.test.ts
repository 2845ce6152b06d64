import { runInNewContext, runInThisContext } from 'node:vm';
import { expect, test } from 'vitest';
import { nodesOf } from '../syntax-tree.ts';
import { type Fault, withFault, withSwitches } from './fault.ts';
import { faultsOf } from './generate.ts';
import { allFaults, sourceOf } from './list.ts';
import { resolve, SENTENCES } from './sentences.ts';
import { noticedShares, tooLow } from './share.ts';
import { state } from './switches.ts';

const changes = (source: string): readonly string[] =>
  faultsOf('src/a/rules/a.ts', source).map((fault) => withFault(source, fault).replace(/\s+/g, ' '));

test.each([
  [
    'a rule that is missing or too early',
    "r([{ name: 'a', rule: a }, { name: 'b', rule: b }])",
    [
      "r(([{ name: 'b', rule: b }]))",
      "r(([{ name: 'a', rule: a }]))",
      "r(([{ name: 'b', rule: b }, { name: 'a', rule: a }]))",
    ],
  ],
  [
    'rules of which every one contributes: only one that is missing',
    "const UPKEEP = [{ name: 'a', rule: a }, { name: 'b', rule: b }]",
    ["const UPKEEP = ([{ name: 'b', rule: b }])", "const UPKEEP = ([{ name: 'a', rule: a }])"],
  ],
  [
    'a requirement',
    'const REQUIREMENTS = { a: [b, c] }',
    ['const REQUIREMENTS = { a: ([c]) }', 'const REQUIREMENTS = { a: ([b]) }'],
  ],
  ['a step', 'r({ why, steps: [one, ...two] })', ['r({ why, steps: ([...two]) })', 'r({ why, steps: ([one]) })']],
  ['a step outside a plan', "r([{ do: 'delete', what }, other])", ['r(([other]))', "r(([{ do: 'delete', what }]))"]],
  ['steps that are made elsewhere', 'r({ why, steps })', ['r(({why}))']],
  ['a latch field', 'r({ latch: { id, token } })', ['r({ latch: ({token}) })', 'r({ latch: ({id}) })']],
  ['a latch that is made elsewhere', 'r({ why, latch })', ['r(({why}))']],
  ['a resourceVersion precondition', "refTo('Pod', pod, { resourceVersion: true })", ["refTo('Pod', pod, ({}))"]],
  ['a uid precondition', 'r({ name, uid })', ['r(({name}))']],
  ['an operand', 'r(a && b || c)', ['r((a && b))', 'r((c))', 'r((a) || c)', 'r((b) || c)']],
  ['a negation', 'r(!a)', ['r((a))']],
  [
    'a condition',
    'if (a) b(); else c ? d : e;',
    ['if ((!(a))) b(); else c ? d : e;', 'if (a) b(); else (!(c)) ? d : e;'],
  ],
  ['a comparison', 'r(a < b, c !== d)', ['r(((a) <= (b)), c !== d)', 'r(a < b, ((c) === (d)))']],
  ['nothing that the compiler refuses', 'r(m.is === 1 && m.b)', ['r((m.is === 1))', 'r(((m.is) !== (1)) && m.b)']],
  ['a condition that is a comparison, only once', 'if (a === b) c();', ['if (((a) !== (b))) c();']],
])('generates: %s', (_, source, expected) => {
  expect(changes(source)).toEqual(expected);
});

test('every switch enables its own fault, and no other', () => {
  const source = 'export const f = (a, b, c) => (a && !b) || (c ? a < 1 : b);';
  const faults = faultsOf('f.js', source);
  const switched = withSwitches(source, faults, new Map(faults.map((fault, id) => [fault, id])));
  const run = (code: string, on: number): string => {
    const switches = { $fault: (id: number) => id === on };
    const f = runInNewContext(`${code.replace('export const f =', 'const f =')} f`, switches) as (
      ...args: unknown[]
    ) => unknown;
    const values = [0, 1, true, false];
    return JSON.stringify(values.flatMap((a) => values.flatMap((b) => values.map((c) => f(a, b, c)))));
  };
  expect(faults.length).toBeGreaterThan(5);
  expect(run(switched, -1)).toBe(run(source, -1));
  for (const [id, fault] of faults.entries()) expect(run(switched, id)).toBe(run(withFault(source, fault), -1));
});

test('a swap is tried only where both rules decide, or the second relies on the first', () => {
  const source = "const L = [{ name: 'a', rule: (o) => o.a }, { name: 'b', rule: (o) => o.b() }]; L";
  const faults = faultsOf('src/a/decide.ts', source);
  const swap = faults.findIndex(({ kind }) => kind === 'order');
  const code = withSwitches(source, faults, new Map(faults.map((fault, id) => [fault, id])));
  const rows = runInThisContext(`{ ${code} }`) as readonly { name: string; rule: (o: object) => unknown }[];
  const isReached = (observed: object): boolean => {
    state.reached.clear();
    rows.find(({ rule }) => rule(observed));
    return state.reached.has(swap);
  };
  const [yes, no] = [() => 'decided', () => undefined];
  expect(isReached({ a: 'decided', b: yes })).toBe(true);
  expect(isReached({ a: 'decided', b: no })).toBe(false);
  expect(isReached({ b: yes })).toBe(false);
  expect(isReached({ a: 'decided' })).toBe(true);
  expect(state.asked.get(swap)).toBe(4);
  expect(rows.flatMap(({ name }) => name)).toEqual(['a', 'b']);
});

test.each(SENTENCES)('$file, $in: $lets', (sentence) => {
  const source = sourceOf(sentence.file);
  const fault = resolve(sentence, source);
  expect(fault, 'no expression is at this address any more: change it in tools/mutants/sentences.ts').toBeDefined();
  expect(fault && source.slice(fault.start, fault.end)).not.toBe(fault?.to);
});

test('an address survives a renamed local, another format and another line', () => {
  const sentence = { file: 'a.ts', in: 'may', operator: '&&', ordinal: 2, becomes: 'left', lets: '' };
  const text = (source: string): string | undefined => {
    const fault = resolve(sentence, source);
    return fault && source.slice(fault.start, fault.end).replace(/\s+/g, ' ');
  };
  expect(text('export const may = (o) => o.a && o.b && o.c;')).toBe('o.a && o.b && o.c');
  expect(text('const x = 1 && 2;\nexport function may(p) {\n  return p.a &&\n p.b &&\n p.c;\n}')).toBe(
    'p.a && p.b && p.c',
  );
  expect(text('export const may = (o) => o.a && o.b;')).toBeUndefined();
});

test('the source is valid code with every fault', () => {
  const all = allFaults();
  for (const [file, faults] of Map.groupBy(all, (fault) => fault.file)) {
    const source = sourceOf(file);
    const ids = new Map(faults.map((fault, id) => [fault, id]));
    expect(() => nodesOf(withSwitches(source, faults, ids)), file).not.toThrow();
  }
  expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(['sentence', 'structural', 'order', 'expression']));
});

test('a share may not fall, by folder nor in total', () => {
  const fault = (file: string, start: number): Fault => ({ file, what: '', kind: 'expression', start, end: 0, to: '' });
  const faults = [...Array(20).keys()].map((i) => fault(i < 10 ? 'src/lib/a.ts' : 'src/pki/b.ts', i));
  const shares = noticedShares(faults, ({ start }) => start > 0);
  expect(shares).toEqual({ src: 95, 'src/lib': 90, 'src/pki': 100 });
  expect(tooLow(shares, { src: 95.4, 'src/lib': 90 })).toEqual([]);
  expect(tooLow(shares, { src: 95, 'src/lib': 95 })).toEqual(['src/lib: 90 % are noticed, and 95 % were.']);
});
