/**
 * An etcd that responds for the members of thousands of clusters in one process: the member lists are real, and
 * nothing else is. Members are distinguished by the dialled address; chosen clusters accept calls and never respond.
 */
import * as http2 from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { CLIENT_PORT } from '../../src/api/names.ts';
import { Cluster, type Member, MemberSchema } from '../../src/gen/etcd/cluster_pb.ts';
import { Maintenance } from '../../src/gen/etcd/maintenance_pb.ts';

interface State {
  readonly id: bigint;
  readonly members: Member[];
}

interface Seat {
  /** `namespace/name`. */
  readonly cluster: string;
  readonly peerURL: string;
  up: boolean;
}

const VERSION = '3.6.16';
const FAILED_PRECONDITION = 9;
const UNIMPLEMENTED = 12;
class Refused extends Error {}

export class ScriptedEtcd {
  readonly #http = http2.createServer({ settings: { initialWindowSize: 1024 ** 2 } });
  readonly #clusters = new Map<string, State>();
  readonly #seats = new Map<string, Seat>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #hung = new Set<string>();
  /** When each cluster was first asked for its members since `turn`. */
  readonly #listed = new Map<string, number>();
  #ids = 1n;
  #address = 0;
  calls = 0;
  opened = 0;

  constructor() {
    this.#server = createServer((socket) => this.#accept(socket, socket.localAddress ?? ''));
    this.#http.on('sessionError', () => {});
    this.#http.on('session', (session) => session.on('error', () => {}));
    this.#http.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) =>
      this.#serve(stream, headers),
    );
  }

  get listed(): ReadonlyMap<string, number> {
    return this.#listed;
  }
  /** From now on, the next request for members counts as a cluster's first. */
  turn(): void {
    this.#listed.clear();
  }

  hang(clusters: readonly string[]): void {
    this.#hung.clear();
    for (const cluster of clusters) this.#hung.add(cluster);
  }

  /** One socket listens for all addresses of this machine: fifteen thousand would exceed the limit of open files. */
  listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', () => reject(new Error(`port ${CLIENT_PORT} is in use: stop what listens there`)));
      this.#server.listen(CLIENT_PORT, '0.0.0.0', resolve);
    });
  }

  /** A new address, at which this member can be reached. */
  seat(cluster: string, peerURL: string): string {
    const n = ++this.#address;
    const address = `127.${100 + Math.floor(n / 62_500)}.${1 + (Math.floor(n / 250) % 250)}.${1 + (n % 250)}`;
    this.#seats.set(address, { cluster, peerURL, up: false });
    return address;
  }

  /** Its process has started: the first member of a cluster bootstraps it, any other must have been added. */
  start(address: string, name: string): void {
    const seat = this.#seats.get(address);
    if (!seat) throw new Error(`no member has the address ${address}`);
    seat.up = true;
    const known = this.#clusters.get(seat.cluster);
    const state = known ?? { id: this.#nextId(), members: [] };
    this.#clusters.set(seat.cluster, state);
    if (!known) state.members.push(this.#member(seat.peerURL, false));
    const own = state.members.find(({ peerURLs }) => peerURLs.includes(seat.peerURL));
    if (own) own.name = name;
  }

  stop(address: string): void {
    const seat = this.#seats.get(address);
    if (seat) seat.up = false;
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#http.close();
  }

  #nextId(): bigint {
    return 0xcafe000000000000n + this.#ids++;
  }

  #member(peerURL: string, isLearner: boolean): Member {
    return create(MemberSchema, { ID: this.#nextId(), peerURLs: [peerURL], isLearner });
  }

  #accept(socket: Socket, address: string): void {
    if (!this.#seats.get(address)?.up) return void socket.destroy();
    this.opened++;
    this.#sockets.add(socket);
    socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket));
    this.#http.emit('connection', socket);
  }

  #serve(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    stream.on('error', () => {});
    this.calls++;
    const seat = this.#seats.get(String(headers[':authority']).split(':')[0] ?? '');
    if (!seat?.up) return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    if (this.#hung.has(seat.cluster)) return void stream.resume();
    const received: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => received.push(chunk));
    stream.on('end', () => {
      try {
        const path = String(headers[':path']).replace('/etcdserverpb.', '');
        this.#reply(stream, this.#carryOut(seat, path, Buffer.concat(received).subarray(5)));
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        this.#refuse(stream, FAILED_PRECONDITION, error.message);
      }
    });
  }

  /** The message of the response; undefined for a call that is not scripted. */
  #carryOut(seat: Seat, path: string, body: Buffer): Uint8Array | undefined {
    const state = this.#clusters.get(seat.cluster);
    const own = state?.members.find(({ peerURLs }) => peerURLs.includes(seat.peerURL));
    if (!state || !own) throw new Refused('etcdserver: not a member');
    const { members } = state;
    const header = { clusterId: state.id, memberId: own.ID, revision: 1n, raftTerm: 2n };
    const answer = <I extends DescMessage, O extends DescMessage>(
      { input, output }: DescMethodUnary<I, O>,
      make: (request: MessageShape<I>) => MessageInitShape<O>,
    ): Uint8Array => toBinary(output, create(output, make(fromBinary(input, body))));
    const find = (id: bigint): Member => {
      const found = members.find(({ ID }) => ID === id);
      if (!found) throw new Refused('etcdserver: member not found');
      return found;
    };
    switch (path) {
      case 'Maintenance/Status':
        return answer(Maintenance.method.status, () => ({
          header,
          version: VERSION,
          storageVersion: '3.6.0',
          dbSize: 20480n,
          dbSizeInUse: 20480n,
          leader: members.find((m) => !m.isLearner)?.ID ?? 0n,
          raftIndex: 10n,
          raftTerm: 2n,
          raftAppliedIndex: 10n,
          isLearner: own.isLearner,
        }));
      case 'Cluster/MemberList':
        if (!this.#listed.has(seat.cluster)) this.#listed.set(seat.cluster, performance.now());
        return answer(Cluster.method.memberList, () => ({ header, members }));
      case 'Cluster/MemberAdd':
        return answer(Cluster.method.memberAdd, ({ peerURLs, isLearner }) => {
          const [url = ''] = peerURLs;
          if (members.some((m) => m.peerURLs.includes(url))) throw new Refused('etcdserver: Peer URLs already exists');
          const member = this.#member(url, isLearner);
          members.push(member);
          return { header, member, members };
        });
      case 'Cluster/MemberPromote':
        return answer(Cluster.method.memberPromote, ({ ID }) => {
          const learner = find(ID);
          if (learner.name === '')
            throw new Refused('etcdserver: can only promote a learner member which is in sync with leader');
          learner.isLearner = false;
          return { header, members };
        });
      case 'Cluster/MemberRemove':
        return answer(Cluster.method.memberRemove, ({ ID }) => {
          members.splice(members.indexOf(find(ID)), 1);
          return { header, members };
        });
      default:
        return undefined;
    }
  }

  #reply(stream: http2.ServerHttp2Stream, message: Uint8Array | undefined): void {
    if (stream.destroyed) return;
    if (!message) return this.#refuse(stream, UNIMPLEMENTED, 'this call is not scripted');
    const frame = Buffer.alloc(5 + message.length);
    frame.writeUInt32BE(message.length, 1);
    frame.set(message, 5);
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto' }, { waitForTrailers: true });
    stream.end(frame);
  }

  #refuse(stream: http2.ServerHttp2Stream, code: number, message: string): void {
    if (stream.destroyed) return;
    const status = { 'grpc-status': String(code), 'grpc-message': encodeURIComponent(message) };
    stream.respond({ ':status': 200, 'content-type': 'application/grpc+proto', ...status }, { endStream: true });
  }
}
