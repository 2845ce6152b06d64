/** Faults that are generated from the syntax tree of a file, independent of line numbers. */

import { child, children, type Node, nameOf, nodesOf } from '../syntax-tree.ts';
import type { Fault } from './fault.ts';

type Change = Omit<Fault, 'file'>;
type Text = (node: Node) => string;

const COMPARISONS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
};

/** Where plans are made and executed. Elsewhere, a uid is data and not a precondition. */
const PLANNED = /\/(rules|runtime)\/|\/(changes|execute|write)[^/]*$/;

/** Where every row contributes and none comes first. */
const UNORDERED = 'UPKEEP';

/** All faults of one file. */
export function faultsOf(file: string, source: string): readonly Fault[] {
  const text: Text = ({ start, end }) => source.slice(start, end);
  const short = (node: Node): string => text(node).replace(/\s+/g, ' ').slice(0, 100);
  const changes = nodesOf(source).flatMap(({ node, within }): readonly Change[] => [
    ...ruleFaults(node, text).filter(({ kind }) => kind !== 'order' || within !== UNORDERED),
    ...requirementFaults(node, text, short).filter(() => within === 'REQUIREMENTS'),
    ...planFaults(node, text, short).filter(() => PLANNED.test(file)),
    ...expressionFaults(node, text, short),
  ]);
  return changes.map((change) => ({ file, ...change }));
}

const at = ({ start, end }: Node): { readonly start: number; readonly end: number } => ({ start, end });

const fieldOf = (object: Node, name: string): Node | undefined =>
  object.type === 'ObjectExpression'
    ? children(object, 'properties').find((property) => nameOf(property['key']) === name)
    : undefined;

const partsOf = (node: Node): readonly Node[] =>
  children(node, node.type === 'ArrayExpression' ? 'elements' : 'properties');

/** An array or object literal of only these parts. */
const literalOf = (node: Node, parts: readonly Node[], text: Text): string => {
  const inner = parts.map(text).join(',\n');
  return node.type === 'ArrayExpression' ? `[${inner}]` : `{${inner}}`;
};

const without = (owner: Node, part: Node, text: Text): string =>
  literalOf(
    owner,
    partsOf(owner).filter((other) => other !== part),
    text,
  );

/** Of an ordered list of rules: one is missing, or two neighbours are swapped. */
function ruleFaults(node: Node, text: Text): readonly Change[] {
  const rows = children(node, 'elements');
  if (node.type !== 'ArrayExpression' || rows.length === 0) return [];
  if (!rows.every((row) => fieldOf(row, 'name') && fieldOf(row, 'rule'))) return [];
  const called = (row: Node): string => nameOf(fieldOf(row, 'name')?.['value']);
  const drops = rows.map((row, i) => ({
    row: i,
    kind: 'structural' as const,
    what: `rule ${called(row)} is missing`,
    to: without(node, row, text),
  }));
  const swaps = rows.slice(1).map((row, i) => ({
    row: i,
    kind: 'order' as const,
    what: `rule ${called(row)} is before ${called(rows[i] ?? row)}`,
    to: literalOf(node, rows.toSpliced(i, 2, row, rows[i] ?? row), text),
  }));
  return [...drops, ...swaps].map((fault) => ({ ...at(node), ...fault }));
}

/** Of the table of disruptions: one requirement of one kind is missing. */
function requirementFaults(node: Node, text: Text, short: Text): readonly Change[] {
  const cells = node.type === 'Property' ? child(node, 'value') : node;
  if (node.type !== 'Property' || cells.type !== 'ArrayExpression') return [];
  return partsOf(cells).map((cell) => ({
    ...at(cells),
    kind: 'structural',
    what: `${nameOf(node['key'])} does not require ${short(cell)}`,
    to: without(cells, cell, text),
  }));
}

const areSteps = (node: Node): boolean => partsOf(node).some((part) => fieldOf(part, 'do'));

/** Of a rule's decision: one step, one latch field or one precondition is missing. */
function planFaults(node: Node, text: Text, short: Text): readonly Change[] {
  const missing = (owner: Node, part: Node, role: string): Change => ({
    ...at(owner),
    kind: 'structural',
    what: `${role} ${short(part)} is missing`,
    to: without(owner, part, text),
  });
  if (node.type === 'ArrayExpression' && areSteps(node))
    return partsOf(node).map((part) => missing(node, part, 'step'));
  if (node.type !== 'ObjectExpression') return [];
  return partsOf(node).flatMap((property): readonly Change[] => {
    const name = nameOf(property['key']);
    if ((name === 'uid' || name === 'resourceVersion') && nameOf(property['value']) !== 'undefined')
      return [missing(node, property, 'precondition')];
    if (!['latch', 'steps', 'sequences'].includes(name)) return [];
    const value = child(property, 'value');
    if (!/^(Array|Object)Expression$/.test(value.type)) return [missing(node, property, 'plan:')];
    return areSteps(value) ? [] : partsOf(value).map((part) => missing(value, part, name));
  });
}

function expressionFaults(node: Node, text: Text, short: Text): readonly Change[] {
  const becomes = (to: string, where: Node = node): Change => ({
    ...at(where),
    kind: 'expression',
    what: `${short(where)} → ${to.replace(/\s+/g, ' ').slice(0, 100)}`,
    to,
  });
  const operator = String(node['operator']);
  switch (node.type) {
    case 'LogicalExpression': {
      if (operator === '??') return [];
      const [left, right] = [child(node, 'left'), child(node, 'right')];
      return [becomes(text(left)), ...(narrows(left, right, text) ? [] : [becomes(text(right))])];
    }
    case 'BinaryExpression': {
      const other = COMPARISONS[operator];
      return other ? [becomes(`(${text(child(node, 'left'))}) ${other} (${text(child(node, 'right'))})`)] : [];
    }
    case 'UnaryExpression':
      return operator === '!' ? [becomes(text(child(node, 'argument')))] : [];
    case 'IfStatement':
    case 'ConditionalExpression': {
      const test = child(node, 'test');
      const isFlipped = test.type === 'UnaryExpression' || /^[!=]==$/.test(String(test['operator']));
      return isFlipped ? [] : [becomes(`!(${text(test)})`, test)];
    }
    default:
      return [];
  }
}

/** What a condition narrows for the compiler: `x`, `!x`, `x === undefined`, and of `x.is === 'present'` or `x.ok` which `x` it is. */
function narrowedBy(test: Node, text: Text): readonly string[] {
  if (test.type === 'LogicalExpression')
    return ['left', 'right'].flatMap((side) => narrowedBy(child(test, side), text));
  if (test.type === 'UnaryExpression') return narrowedBy(child(test, 'argument'), text);
  if (test.type === 'BinaryExpression') {
    const [left, right] = [child(test, 'left'), child(test, 'right')];
    const isLiteral = right.type === 'Literal' || nameOf(right) === 'undefined';
    return isLiteral && /^[!=]==$/.test(String(test['operator'])) ? narrowedBy(left, text) : [];
  }
  const subject = test.type === 'ChainExpression' ? child(test, 'expression') : test;
  if (subject.type !== 'Identifier' && subject.type !== 'MemberExpression') return [];
  const isTag = /^(is|ok)$/.test(nameOf(subject['property']));
  return [plain(text(isTag ? child(subject, 'object') : subject))];
}

const plain = (code: string): string => code.replaceAll('?.', '.');

/** Whether the code that follows does not compile without this condition: the compiler detects the fault, so no test has to. */
function narrows(test: Node, then: Node, text: Text): boolean {
  const uses = (subject: string): boolean =>
    new RegExp(`(?<![\\w.])${RegExp.escape(subject)}(?!\\w)`).test(plain(text(then)));
  return narrowedBy(test, text).some(uses);
}
