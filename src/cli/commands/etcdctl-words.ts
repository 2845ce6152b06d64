/** The common words of etcdctl, for machines without one. Output is that of etcdctl's simple format. */
import { parseArgs } from 'node:util';
import { KeysClient, type KeysPort } from '../../etcd/keys.ts';
import { type Context, UserError } from '../context.ts';
import { expected, type Reached } from '../gather/session.ts';
import type { Target } from '../gather/target.ts';
import { alarmList } from './maintenance.ts';
import { LONG_MS, listMembers } from './members.ts';

type Ask = ReturnType<Target['session']['ask']>;
interface On {
  readonly context: Context;
  readonly target: Target;
  readonly from: Reached;
  readonly ask: Ask;
  readonly keys: KeysPort;
}

const OPTIONS = {
  prefix: { type: 'boolean' },
  'from-key': { type: 'boolean' },
  'keys-only': { type: 'boolean' },
  'count-only': { type: 'boolean' },
  'print-value-only': { type: 'boolean' },
  limit: { type: 'string' },
  rev: { type: 'string' },
} as const;

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new UserError(`${message} (without a local etcdctl, only its common flags are understood)`);
  }
}

const number = (text: string | undefined): number => {
  if (text !== undefined && !/^\d+$/.test(text)) throw new UserError(`${JSON.stringify(text)} is not a number`);
  return Number(text ?? 0);
};
const text = (data: Uint8Array): string => new TextDecoder().decode(data);

async function get({ context, from, ask, keys }: On, args: readonly string[]): Promise<number> {
  const { values, positionals } = parse(args);
  const [key, end] = positionals;
  if (key === undefined) throw new UserError('get needs a key');
  const { kvs, count } = expected(
    from,
    await keys.range(ask, {
      key,
      ...(values['from-key'] ? { end: new Uint8Array([0]) } : end !== undefined && { end }),
      prefix: values.prefix === true,
      keysOnly: values['keys-only'] === true,
      countOnly: values['count-only'] === true,
      limit: number(values.limit),
      revision: BigInt(number(values.rev)),
    }),
  );
  if (values['count-only']) context.print(`"Count" : ${count}`);
  for (const kv of kvs) {
    if (!values['print-value-only']) context.print(text(kv.key));
    if (!values['keys-only']) context.print(text(kv.value));
  }
  return 0;
}

async function put({ context, from, ask, keys }: On, args: readonly string[]): Promise<number> {
  const { positionals } = parse(args);
  const [key, value] = positionals;
  if (key === undefined || value === undefined) throw new UserError('put needs a key and a value');
  expected(from, await keys.put(ask, key, value));
  context.print('OK');
  return 0;
}

async function del({ context, from, ask, keys }: On, args: readonly string[]): Promise<number> {
  const { values, positionals } = parse(args);
  const [key, end] = positionals;
  if (key === undefined) throw new UserError('del needs a key');
  const range = { key, prefix: values.prefix === true, ...(end !== undefined && { end }) };
  context.print(String(expected(from, await keys.delete(ask, range))));
  return 0;
}

async function memberList({ context, target }: On): Promise<number> {
  for (const { id, name, peerURLs, clientURLs, isLearner } of (await listMembers(target)).members)
    context.print(
      [
        id.toString(16),
        name === '' ? 'unstarted' : 'started',
        name,
        peerURLs.join(','),
        clientURLs.join(','),
        isLearner,
      ].join(', '),
    );
  return 0;
}

async function endpointHealth({ context, target: { session } }: On): Promise<number> {
  const healthy = await Promise.all(
    session.reached.map(async (member) => {
      const { ok } = await session.etcd.memberList({ ...session.ask(member), linearizable: true });
      context.print(`${member.name} is ${ok ? 'healthy' : 'unhealthy'}`);
      return ok;
    }),
  );
  return healthy.every(Boolean) ? 0 : 1;
}

type Word = (on: On, args: readonly string[]) => Promise<number>;
const WORDS: readonly (readonly [words: string, run: Word])[] = [
  ['get', get],
  ['put', put],
  ['del', del],
  ['member list', memberList],
  ['endpoint health', endpointHealth],
  ['alarm list', ({ context, target }) => alarmList(context, target.cluster?.metadata.name, {})],
];

export async function builtIn(context: Context, target: Target, words: readonly string[]): Promise<number> {
  const found = WORDS.find(([name]) => words.slice(0, name.split(' ').length).join(' ') === name);
  if (!found)
    throw new UserError(
      `there is no etcdctl in the PATH, and without it only these are understood: ${WORDS.map(([name]) => name).join(', ')}`,
    );
  const [name, run] = found;
  const { from } = await listMembers(target);
  const client = new KeysClient(() => performance.now());
  try {
    const on = { context, target, from, ask: target.session.ask(from, LONG_MS), keys: client.keys };
    return await run(on, words.slice(name.split(' ').length));
  } finally {
    client.close();
  }
}
