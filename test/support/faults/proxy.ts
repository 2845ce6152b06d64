/**
 * A faulty reverse proxy between a program and the API server. TLS on both sides, HTTP/2 if the client wants it. It counts
 * calls, and faults are rules: which calls, and what happens to them.
 */
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Agent } from 'undici';
import { createCA, type KeyPair } from '../../../local/pki.ts';
import type { Identity } from '../../../src/kube/identity.ts';
import { Passing, type Tokens } from './passing.ts';
import type { Fault, Match, Passed, Rule } from './rules.ts';
import { startWire } from './wire.ts';

export type { Fault, Match, Passed };

export interface FaultProxy {
  /** How to reach the API server through the proxy. */
  readonly identity: Identity;
  readonly calls: readonly Passed[];
  /** Returns a function that removes the rule. The first rule that matches a call counts. */
  fault(match: Match, fault: Fault): () => void;
  /** Breaks every connection that is open now. */
  cut(): void;
  /** Sends GOAWAY to every client, as API servers do now and then to balance connections; running calls continue. */
  goAway(): void;
  /** As a network that drops everything: connections that are open now stay open, and nothing moves on them. */
  freeze(): void;
  /**
   * From now on the proxy serves a certificate of another CA and accepts another token only, and breaks the connections with
   * the old ones. Resolves to how to reach it now.
   */
  rotate(): Promise<Identity>;
  close(): Promise<void>;
}

export async function startFaultProxy(upstream: Identity): Promise<FaultProxy> {
  const { server, ca, cert: _, key: __, ...rest } = upstream;
  const tokens: Tokens = { real: upstream.token, expected: upstream.token };
  const agent = new Agent({
    allowH2: true,
    bodyTimeout: 0,
    headersTimeout: 0,
    keepAliveTimeout: 3_600_000,
    keepAliveMaxTimeout: 3_600_000,
    connect: { ...(ca && { ca }) },
  });
  const certify = async () => {
    const issuer = await createCA();
    return { ...(await issuer.issue({ user: 'fault-proxy' }, ['127.0.0.1'])), ca: issuer.cert };
  };
  const own = await certify();
  let rotations = 0;
  const rules = new Set<Rule>();
  const calls: Passed[] = [];
  const sessions = new Set<ServerHttp2Session>();
  const front = await listen(own, sessions, (incoming, outgoing) => {
    const passing = new Passing({ server, agent, tokens, incoming, outgoing, calls, rules });
    passing.run().catch(() => passing.breakOff());
  });
  const wire = await startWire((front.address() as AddressInfo).port);
  const identity: Identity = { ...rest, server: `https://127.0.0.1:${wire.port}`, ca: own.ca };
  return {
    identity,
    calls,
    fault: (match, fault) => {
      const rule: Rule = { match, fault, over: new AbortController(), seen: 0 };
      rules.add(rule);
      return () => {
        rules.delete(rule);
        rule.over.abort();
      };
    },
    cut: () => wire.cut(),
    goAway: () => {
      for (const session of sessions) session.close();
    },
    freeze: () => wire.freeze(),
    rotate: async () => {
      const next = await certify();
      front.setSecureContext(next);
      tokens.expected = `token-${++rotations}`;
      wire.cut();
      return { ...identity, ca: next.ca, token: tokens.expected };
    },
    close: async () => {
      for (const rule of rules) rule.over.abort();
      wire.close();
      front.close();
      await agent.destroy();
    },
  };
}

async function listen(
  own: KeyPair,
  sessions: Set<ServerHttp2Session>,
  onRequest: (incoming: Http2ServerRequest, outgoing: Http2ServerResponse) => void,
): Promise<Http2SecureServer> {
  const front = createSecureServer({ key: own.key, cert: own.cert, allowHTTP1: true });
  front.on('sessionError', () => undefined);
  front.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });
  front.on('request', (incoming, outgoing) => {
    incoming.on('error', () => undefined);
    outgoing.on('error', () => undefined);
    onRequest(incoming, outgoing);
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  return front;
}
