/** Conditions about what was accepted and is risky, or has no effect. */

import { droppedKeys } from '../../domain/additional-metadata.ts';
import { type ConditionUpdate, conditionOf } from '../../domain/conditions.ts';
import { IGNORED_FIELDS, ignoredMessage } from '../../domain/ignored-fields.ts';
import { KNOWN_ISSUES as ISSUES, issuesMessage, knownIssues } from '../../domain/known-issues.ts';
import { versionNumber } from '../../lib/version.ts';
import { ignoredPeers } from './network-policy.ts';
import { arePeersPinned, type ClusterFacts } from './observed.ts';
import { ignoredAboutPeers, peersOf } from './peers.ts';

export const FIELDS_IGNORED = 'FieldsIgnored';
export const KNOWN_ISSUES = 'KnownIssues';

export function ignoredConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  const {
    cluster: { spec },
    deniedKeys = [],
  } = o;
  const ignored = IGNORED_FIELDS.filter(({ isIgnored }) => isIgnored(spec));
  const keys = droppedKeys(spec.additionalMetadata);
  const named = keys.length === 0 ? [] : [`the keys are ${keys.join(', ')}`];
  const denied = `the administrator denies these keys of additionalMetadata, and they are not copied: ${deniedKeys.join(', ')}`;
  const peers = (spec.networkPolicy ? ignoredPeers(spec) : []).map(
    (peer) => `${peer} lets nothing in: cidr is no network, or except has one that is not a smaller one inside of it`,
  );
  const messages = [
    ...ignored.map(ignoredMessage),
    ...peers,
    ...named,
    ...(deniedKeys.length > 0 ? [denied] : []),
    ...ignoredAboutPeers(o),
  ];
  return messages.length === 0 ? [] : [conditionOf(FIELDS_IGNORED)('True', 'NoEffect', messages.join('; '))];
}

export const PEERS_PINNED = 'PeersPinned';

/** The CA that the operator manages for peers signs nothing else. Any other may also sign for applications. */
export function peerConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  const { peer } = o.cluster.spec.tls ?? {};
  if (o.members.length > 0 && peersOf(o).autoTls) {
    const open =
      'members run with --peer-auto-tls: the traffic at port 2380 is encrypted with self-signed certificates that no member verifies, so every client that reaches that port can read and write all data, also with auth. All members, new ones included, must stay alike, with or without the annotation: restrict the port with a NetworkPolicy, and restore a snapshot into a new cluster with tls.peer';
    return [conditionOf(PEERS_PINNED)('False', 'PeerAutoTLS', open)];
  }
  if (!peer || peer.managed || o.members.length === 0 || arePeersPinned(o)) return [];
  const message =
    'members accept every certificate of the peer CA at port 2380, where auth does not apply: the cluster was bootstrapped before peers demanded a name. Let no other certificate be issued by this CA, or move the data to a new cluster with a snapshot';
  return [conditionOf(PEERS_PINNED)('False', 'PeerNameNotDemanded', message)];
}

/** The versions that members run, and the one that new members get. */
function versionsOf({ cluster, members }: ClusterFacts): readonly string[] {
  const running = members.flatMap((m) => m.self?.version ?? m.object.status?.version ?? []);
  return [...new Set([...running, cluster.spec.version])].sort((a, b) => versionNumber(a) - versionNumber(b));
}

export function issueConditions(o: ClusterFacts): readonly ConditionUpdate[] {
  const versions = versionsOf(o);
  const found = versions.flatMap(knownIssues);
  const worst = ISSUES.find((issue) => found.includes(issue)); // in their order, not in that of the versions
  const message = versions.flatMap((version) => issuesMessage(version) ?? []).join('. ');
  return worst ? [conditionOf(KNOWN_ISSUES)('True', worst.risk, message)] : [];
}
