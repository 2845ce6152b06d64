/**
 * Faults with a sentence: those that lose data or a quorum or bootstrap a second cluster, and that no generator creates. Each is
 * addressed by the declaration that it is in, an operator and the ordinal of that operator there, in the order of the source:
 * a renamed local or another format changes none of them.
 */

import { child, type Located, type Node, nameOf, nodesOf } from '../syntax-tree.ts';
import type { Fault } from './fault.ts';

export interface Sentence {
  readonly file: string;
  /** A top-level function or constant, or `Class.method`. */
  readonly in: string;
  /** `&&`, `+`, …; `if` and `?:` for a condition, `call()` for a call of that name, `key:` for the value of a property. */
  readonly operator: string;
  /** 1 is the first. */
  readonly ordinal: number;
  /** `left` or `right` operand, or the source of a constant. */
  readonly becomes: string;
  /** Which failure it causes. */
  readonly lets: string;
}

type Row = readonly [declared: string, operator: string, ordinal: number, becomes: string, lets: string];

const of = (file: string, rows: readonly Row[]): readonly Sentence[] =>
  rows.map((row) => ({ file, in: row[0], operator: row[1], ordinal: row[2], becomes: row[3], lets: row[4] }));

/** The simulation alone must detect each of these, without any table. */
export const DANGEROUS: readonly Sentence[] = [
  ...of('src/access/evaluate/evaluate.ts', [
    ['nextOf', 'caBundleIn()', 1, 'to', 'members restart with a CA bundle that does not verify their peers'],
  ]),
  ...of('src/access/evaluate/port-trust.ts', [
    ['acceptedByAll', 'every()', 1, 'accepts(now, chain)', 'a certificate is used that running members refuse'],
    ['mayReissue', '>=', 1, 'true', 'members serve certificates of a CA that clients do not have yet'],
  ]),
  ...of('src/access/evaluate/root-password.ts', [
    ['rootPassword', 'filter()', 1, "[next ?? given ?? '']", 'the operator is locked out by a new root password'],
  ]),
  ...of('src/access/evaluate/user-certificates.ts', [
    ['todoOf', 'acceptedByAll()', 1, 'true', 'members serve a certificate that their peers refuse'],
  ]),
  ...of('src/controllers/cluster/credentials/ca-rotation.ts', [
    ['mayNarrow', '&&', 1, 'left', 'the old CA is removed although a member still serves a certificate of it'],
  ]),
  ...of('src/controllers/cluster/credentials/rules/ca-rotation.ts', [
    ['discardCABundles', 'filter()', 1, 'c.certificates.kept', 'a Pod waits for ever for a deleted CA bundle'],
  ]),
  ...of('src/domain/ownership.ts', [
    ['isMemberOf', '&&', 3, 'false', 'a healthy cluster counts as lost after a migration'],
  ]),
  ...of('src/domain/quorum.ts', [['quorumOf', '+', 1, 'left', 'half of an even number counts as a quorum']]),
  ...of('src/domain/disruption.ts', [
    ['othersHealthy', 'filter()', 1, '[]', 'a voter is removed that the quorum needs'],
  ]),
  ...of('src/controllers/cluster/observe.ts', [
    ['presentCluster', 'if', 3, 'true', 'a deleted cluster is bootstrapped again, because the cache is late'],
  ]),
  ...of('src/controllers/cluster/observe-etcd.ts', [
    ['askEtcd', 'linearizable:', 1, 'false', 'a member list is believed that no quorum confirms'],
  ]),
  ...of('src/controllers/cluster/rules/repair.ts', [
    ['replaceLost', '&&', 1, 'left', 'a member is replaced against the disruption check'],
  ]),
  ...of('src/controllers/cluster/rules/shrink.ts', [
    ['removeMember', 'if', 1, 'false', 'a member is removed against the disruption check'],
    ['deleteRemovedMember', '||', 2, 'left', 'members are deleted, because an emptied member does not list them'],
  ]),
  ...of('src/controllers/member/observe.ts', [
    ['getOrFetch', '??', 1, 'left', 'a Pod or a PVC counts as deleted, because the cache is late'],
  ]),
  ...of('src/controllers/member/rules/leaving.ts', [
    ['release', 'if', 3, 'true', 'a finalizer is released although etcd still counts the vote'],
  ]),
  ...of('src/controllers/member/wanted-pod.ts', [
    ['wantedInitialState', 'if', 1, 'false', 'a second, empty cluster is bootstrapped by a seed that had joined'],
  ]),
  ...of('src/runtime/controller.ts', [
    ['Controller.#reconcile', '#barrier()', 1, 'undefined', 'a reconcile does not see what the last one created'],
  ]),
  ...of('src/runtime/execute.ts', [['execute', 'if', 3, 'false', 'a step is taken whose latch was never written']]),
];

/** The tests, or else some worlds of the simulation, must detect each of these. */
export const SENTENCES: readonly Sentence[] = [
  ...DANGEROUS,
  ...of('src/domain/quorum.ts', [
    ['healthyReport', '<=', 1, 'true', 'a member that is far behind counts as healthy'],
    ['isCorrupt', '&&', 1, 'right', 'a member is replaced although no quorum agrees on the data'],
    ['reportOf', '?:', 1, 'true', 'a response from a reused address counts one voter twice'],
  ]),
  ...of('src/domain/disruption.ts', [
    ['anotherVoterStays', 'some()', 1, 'true', 'the last voter is removed, and the data with it'],
    ['dataSurvives', '?:', 1, 'false', 'a Pod is deleted that alone keeps a PVC, and its data with it'],
    ['policyRecorded', '?:', 1, 'true', 'a PVC is deleted before its member has the policy Retain'],
  ]),
  ...of('src/controllers/cluster/quorum.ts', [['votersOf', '!', 1, 'true', 'learners count as voters']]),
  ...of('src/controllers/cluster/execute-etcd-call.ts', [
    ['executeEtcdCall', 'repeatable:', 1, 'true', 'a membership change is made at two members'],
    ['once', 'learner:', 1, 'false', 'an empty member is added as a voter'],
  ]),
  ...of('src/controllers/cluster/rules/bootstrap.ts', [
    ['bootstrap', '??', 3, 'right', 'a crash changes the token, and bootstraps another etcd cluster'],
  ]),
  ...of('src/controllers/cluster/observed.ts', [
    ['seedNumber', 'max()', 1, '1', 'a rebuilt seed waits for the name of the old one'],
  ]),
  ...of('src/controllers/cluster/quarantine.ts', [
    ['expiresAt', '??', 1, 'right', 'the PVC of a removed member is deleted at once, because the PVC itself is old'],
  ]),
  ...of('src/controllers/member/observe.ts', [
    ['askPeers', 'linearizable:', 1, 'false', 'a member without a quorum causes the release of a finalizer'],
    ['askPeers', 'if', 4, 'false', 'a member of another cluster causes the release of a finalizer'],
    ['askPeers', 'if', 5, 'true', 'a member of a forced new cluster causes the release of a finalizer'],
  ]),
  ...of('src/controllers/member/rules/leaving.ts', [
    ['disposeVolume', 'ownerReferences:', 2, 'undefined', 'a PVC with the policy Retain is deleted with its owner'],
    ['releaseFinalizer', 'filter()', 1, '[]', 'the finalizer of another controller is removed'],
  ]),
  ...of('src/runtime/execute.ts', [
    ['execute', 'needsVersion()', 1, 'false', 'evidence from a stale view overwrites a newer status'],
  ]),
  ...of('src/runtime/controller.ts', [
    ['confirmed', 'waitForDeletion()', 1, 'undefined', 'a reconcile does not see that an object is deleted'],
  ]),
  ...of('src/etcd/guarded.ts', [['guarded', '?:', 1, 'true', 'a process that has lost the Lease changes members']]),
  ...of('src/etcd/failover.ts', [
    ['atAny', '&&', 1, 'false', 'a change whose response was lost is sent to a second member'],
  ]),
  ...of('src/api/names.ts', [['memberName', 'shortName()', 1, "'x'", 'all members have one name']]),
];

/** How a node is addressed, and the expression that a fault replaces there. */
function siteOf(node: Node): { readonly operator: string; readonly at: number; readonly replaced: Node } | undefined {
  switch (node.type) {
    case 'LogicalExpression':
    case 'BinaryExpression':
      return { operator: String(node['operator']), at: child(node, 'left').end, replaced: node };
    case 'UnaryExpression':
      return { operator: String(node['operator']), at: node.start, replaced: node };
    case 'IfStatement':
      return { operator: 'if', at: node.start, replaced: child(node, 'test') };
    case 'ConditionalExpression':
      return { operator: '?:', at: node.start, replaced: child(node, 'test') };
    case 'CallExpression': {
      const callee = child(node, 'callee');
      return { operator: `${nameOf(callee['property'] ?? callee)}()`, at: callee.end, replaced: node };
    }
    case 'Property':
      return { operator: `${nameOf(node['key'])}:`, at: node.start, replaced: child(node, 'value') };
    default:
      return undefined;
  }
}

/** The fault that a sentence describes; `undefined` when no expression is at its address any more. */
export function resolve(sentence: Sentence, source: string): Fault | undefined {
  const sites = nodesOf(source)
    .filter(({ within }: Located) => within === sentence.in)
    .flatMap(({ node }) => siteOf(node) ?? [])
    .filter(({ operator }) => operator === sentence.operator)
    .toSorted((a, b) => a.at - b.at);
  const replaced = sites[sentence.ordinal - 1]?.replaced;
  if (!replaced) return undefined;
  const { start, end } = replaced;
  const isOperand = sentence.becomes === 'left' || sentence.becomes === 'right';
  const operand = isOperand ? child(replaced, sentence.becomes) : undefined;
  const to = operand ? source.slice(operand.start, operand.end) : sentence.becomes;
  return { file: sentence.file, what: sentence.lets, kind: 'sentence', start, end, to };
}
