/** The syntax tree of a source file, from the parser that is part of vitest. */
import { parseAst } from 'vitest/node';

export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** A node, and its top-level declaration: `removalBlockedBy`, or `Controller.#barrier` for a method. */
export interface Located {
  readonly node: Node;
  readonly within: string;
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string';

/** The child of that name; a tree without it is not what the caller takes it for. */
export function child(node: Node, field: string): Node {
  const value = node[field];
  if (!isNode(value)) throw new Error(`a ${node.type} has no node called ${field}`);
  return value;
}

export const children = (node: Node, field: string): readonly Node[] =>
  Array.isArray(node[field]) ? node[field].filter(isNode) : [];

/** The name of an identifier, a private name or a string that is used as a key; empty for anything computed. */
export const nameOf = (node: unknown): string => {
  if (!isNode(node)) return '';
  if (node.type === 'PrivateIdentifier') return `#${String(node['name'])}`;
  const name = node.type === 'Identifier' ? node['name'] : node['value'];
  return typeof name === 'string' ? name : '';
};

const DECLARATIONS: ReadonlySet<string> = new Set(['FunctionDeclaration', 'VariableDeclarator', 'ClassDeclaration']);
const MEMBERS: ReadonlySet<string> = new Set(['MethodDefinition', 'PropertyDefinition']);

/** Every node of a file, outer ones before inner ones, in the order of the source. */
export function nodesOf(source: string): readonly Located[] {
  const found: Located[] = [];
  const visit = (node: Node, within: string): void => {
    let here = within;
    if (within === '' && DECLARATIONS.has(node.type)) here = nameOf(node['id']);
    else if (MEMBERS.has(node.type) && !within.includes('.')) here = `${within}.${nameOf(node['key'])}`;
    found.push({ node, within: here });
    for (const value of Object.values(node))
      for (const inner of Array.isArray(value) ? value : [value]) if (isNode(inner)) visit(inner, here);
  };
  visit(parseAst(source, { lang: 'ts' }) as unknown as Node, '');
  return found;
}
