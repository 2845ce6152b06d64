/**
 * The Secrets with the operator's CA bundle, client certificate and root password, which agents mount. Found by content: during a CA
 * rotation, the name alone does not determine which bundle and which certificate members accept now. Pure.
 */

import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import { trustName } from '../../api/names.ts';
import { certificatesOf, portOf, writtenFor } from '../../domain/certificate-requirements.ts';
import { CA, CERT, KEY } from '../../pki/examine.ts';
import { digestOf } from './ca-bundle.ts';
import type { Material } from './evaluate.ts';
import { passwordSecrets, type RootPassword } from './root-password.ts';
import { type Secrets, textOf } from './secret-set.ts';
import type { Sources } from './view.ts';

export function sourcesOf(
  cluster: EtcdCluster,
  secrets: Secrets,
  material: Material | undefined,
  password: RootPassword | undefined,
): Sources {
  const needs = certificatesOf(cluster).filter(({ role }) => portOf(role) === 'client');
  const trusted = digestOf(material?.ca ?? '');
  // Managed Secrets first: they are kept, while a CA bundle Secret is deleted after a rotation, and a user's Secret at any time.
  const names = [
    ...needs.flatMap((need) => writtenFor(need) ?? []),
    ...needs.map(({ secret }) => secret),
    ...(trusted === undefined ? [] : [trustName(cluster.metadata.name ?? '', 'client', trusted)]),
  ];
  const first = (holds: (text: (key: string) => string) => boolean): string | undefined =>
    names.find((name) => holds((key) => textOf(secrets.get(name), key)));
  // A bundle that was just recorded may be in no Secret yet: the previous one verifies members until they serve other certificates.
  const ca =
    first((text) => trusted !== undefined && digestOf(text(CA)) === trusted) ??
    first((text) => digestOf(text(CA)) !== undefined);
  const pair = material?.cert && first((text) => text(CERT) === material.cert && text(KEY) === material.key);
  // The password that etcd accepted last; for a cluster of an earlier operator, the user's.
  const [given = '', kept = ''] = passwordSecrets(cluster);
  const proven = password?.kept.password === undefined ? [] : [kept];
  const [root] = [...proven, ...(password?.given === undefined ? [] : [given])];
  return { ...(ca !== undefined && { ca }), ...(pair && { pair }), ...(root !== undefined && { root }) };
}
