/** What a hostile or broken member can do to the operator: nothing that lasts, and less with every call. */
import * as http2 from 'node:http2';
import type { AddressInfo } from 'node:net';
import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, onTestFinished, test } from 'vitest';
import { MemberListResponseSchema } from '../gen/etcd/cluster_pb.ts';
import { printable } from '../lib/printable.ts';
import { EtcdClient } from './client.ts';
import type { Result } from './errors.ts';

const kindOf = (answer: Result<unknown>): string => (answer.ok ? 'ok' : answer.error.kind);

type Serve = (stream: http2.ServerHttp2Stream) => void;

/** A server that handles every call like this, and counts them. */
async function aHostileMember(serve: Serve) {
  const server = http2.createServer();
  const sessions = new Set<http2.ServerHttp2Session>();
  const seen = { calls: 0, endpoint: '', serve };
  server.on('sessionError', () => {});
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream: http2.ServerHttp2Stream) => {
    seen.calls++;
    stream.on('error', () => {});
    seen.serve(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  seen.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return seen;
}

const answering =
  (body: Buffer): Serve =>
  (stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(body);
  };

/** Announces a message of 64 KiB and sends it a byte at a time. */
const dripping: Serve = (stream) => {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' });
  stream.write(Buffer.from([0, 0, 0, 0xff, 0xff]));
  const drip = setInterval(() => stream.write(Buffer.alloc(1)), 20);
  stream.on('close', () => clearInterval(drip));
};

const hangingUp: Serve = (stream) => stream.session?.destroy();

const envelope = (message: Uint8Array, flags = 0): Buffer => {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
};

const aList = (members: number, clusterId = 7n): Buffer =>
  envelope(
    toBinary(
      MemberListResponseSchema,
      create(MemberListResponseSchema, {
        header: { clusterId },
        members: Array.from({ length: members }, (_, i) => ({ ID: BigInt(i) })),
      }),
    ),
  );

function aClient(options?: ConstructorParameters<typeof EtcdClient>[1]) {
  const client = new EtcdClient(() => performance.now(), options);
  onTestFinished(() => client.close());
  return client;
}

describe('a hostile member', () => {
  test.each([
    ['announces four gigabytes', Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1])],
    ['lists a million members', envelope(Buffer.alloc(1024 ** 2, Buffer.from([0x12, 0])))],
    ['lists more members than a real cluster has', aList(101)],
    ['sends bytes that are no message', envelope(Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]))],
    ['sends a compressed message, which the client does not accept', envelope(Buffer.from('bomb'), 1)],
    ['sends two responses', Buffer.concat([envelope(Buffer.alloc(0)), envelope(Buffer.alloc(0))])],
    ['sends none', Buffer.alloc(0)],
  ])('that %s is refused', async (_, body) => {
    const { endpoint } = await aHostileMember(answering(body));
    const before = process.memoryUsage().rss;
    const answer = await aClient().members.list({ endpoint, timeoutMs: 5_000 }, { linearizable: true });
    expect(kindOf(answer)).toBe('badAnswer');
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 ** 2);
  });

  test('S16: that fails with 60 KiB of control characters gets a short, printable message', async () => {
    const text = encodeURIComponent('etcdserver: \u001b[2Jgone\n').repeat(1_500);
    const { endpoint } = await aHostileMember((stream) => {
      const trailers = { 'grpc-status': '2', 'grpc-message': text };
      stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto', ...trailers }, { endStream: true });
    });
    const answer = await aClient().members.list({ endpoint, timeoutMs: 5_000 }, { linearizable: true });
    const message = answer.ok ? '' : answer.error.message;
    expect(message).toMatch(/^etcdserver: {2}\[2Jgone etcdserver: /);
    expect([message.length, printable(message)]).toEqual([500, message]);
  });

  test('S16: that lists names and URLs of 100 KiB cannot make a status of them', async () => {
    const long = `\u001b${'x'.repeat(100_000)}`;
    const body = create(MemberListResponseSchema, {
      header: { clusterId: 7n },
      members: [{ ID: 1n, name: long, peerURLs: [long], clientURLs: [] }],
    });
    const { endpoint } = await aHostileMember(answering(envelope(toBinary(MemberListResponseSchema, body))));
    const answer = await aClient().members.list({ endpoint, timeoutMs: 5_000 }, { linearizable: true });
    const [entry] = answer.ok ? answer.value.members : [];
    expect([entry?.name.length, entry?.peerURLs[0]?.length]).toEqual([253, 1024]);
    expect(entry?.name).not.toContain('\u001b');
  });

  test('that drips its response is aborted at the time limit', async () => {
    const { endpoint } = await aHostileMember(dripping);
    expect(kindOf(await aClient().status({ endpoint, timeoutMs: 300 }))).toBe('timeout');
  });
});

/** A fake clock makes the pauses exact; a call takes no time. */
function aPatientClient() {
  let time = 0;
  const client = new EtcdClient(() => time, { now: () => time, backoff: { firstMs: 1_000, maxMs: 30_000 } });
  onTestFinished(() => client.close());
  return { client, pass: (ms: number) => (time += ms) };
}

describe('a member that is called every second for ten minutes', () => {
  test.each<[string, Serve, string]>([
    ['lists too many members', answering(aList(101)), 'badAnswer'],
    ['sends garbage', answering(envelope(Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]))), 'badAnswer'],
    ['responds for another cluster', answering(aList(3, 8n)), 'wrongCluster'],
    ['drips its response', dripping, 'timeout'],
    ['disconnects', hangingUp, 'disconnected'],
  ])('and %s gets two dozen calls, and is called again at once when its Pod has changed', async (_, serve, kind) => {
    const member = await aHostileMember(serve);
    const { client, pass } = aPatientClient();
    const timeoutMs = kind === 'timeout' ? 100 : 10_000;
    const ask = { endpoint: member.endpoint, timeoutMs, access: { cluster: 'ns/db', clusterId: 7n } };
    // A dripped list could also lack a quorum: then only the status call proves that the member fails.
    const look = () => (kind === 'timeout' ? client.status(ask) : client.members.list(ask, { linearizable: true }));
    const kinds: Record<string, number> = {};
    for (let second = 0; second < 600; second++) {
      const answer = await look();
      expect(answer).toMatchObject({ ok: false, error: { since: 0 } });
      kinds[kindOf(answer)] = (kinds[kindOf(answer)] ?? 0) + 1;
      pass(1_000);
    }
    const made = kinds[kind] ?? 0;
    expect(made).toBeLessThanOrEqual(25);
    expect(kinds).toEqual({ [kind]: made, unreachable: 600 - made });
    // On a busy machine a call may time out before it was sent.
    if (kind === 'timeout') expect(member.calls).toBeLessThanOrEqual(made);
    else expect(member.calls).toBe(made);

    member.serve = answering(aList(3));
    client.reset('ns/db');
    expect(kindOf(await client.members.list({ ...ask, timeoutMs: 10_000 }, { linearizable: true }))).toBe('ok');
    expect(client.sessions()).toMatchObject({ unreachable: 0 });
  });

  test('is found within its pause when it recovers by itself', async () => {
    const member = await aHostileMember(hangingUp);
    const { client, pass } = aPatientClient();
    const ask = { endpoint: member.endpoint, timeoutMs: 2_000 };
    for (let second = 0; second < 600; second++, pass(1_000)) await client.members.list(ask, { linearizable: true });
    member.serve = answering(aList(3));
    let waited = 0;
    while (kindOf(await client.members.list(ask, { linearizable: true })) !== 'ok') waited += pass(1_000) && 1;
    expect(waited).toBeLessThanOrEqual(30);
  });
});
