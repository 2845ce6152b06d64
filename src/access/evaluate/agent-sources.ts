/**
 * Which Secrets hold what the operator reaches members with, so that others can be given the same: an agent mounts them. Found
 * by their content, because that is what is trusted and shown at this very moment, in the middle of a rotation too. Pure.
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
  // What the operator writes for members stays; a Secret with trust goes after a rotation, and that of a user whenever he likes.
  const names = [
    ...needs.flatMap((need) => writtenFor(need) ?? []),
    ...needs.map(({ secret }) => secret),
    ...(trusted === undefined ? [] : [trustName(cluster.metadata.name ?? '', 'client', trusted)]),
  ];
  const first = (holds: (text: (key: string) => string) => boolean): string | undefined =>
    names.find((name) => holds((key) => textOf(secrets.get(name), key)));
  // What was recorded a moment ago may be in no Secret yet: what was there before is as good until members show something else.
  const ca =
    first((text) => trusted !== undefined && digestOf(text(CA)) === trusted) ??
    first((text) => digestOf(text(CA)) !== undefined);
  const pair = material?.cert && first((text) => text(CERT) === material.cert && text(KEY) === material.key);
  // What etcd accepted last; of a cluster of an earlier operator, what was given.
  const [given = '', kept = ''] = passwordSecrets(cluster);
  const proven = password?.kept.password === undefined ? [] : [kept];
  const [root] = [...proven, ...(password?.given === undefined ? [] : [given])];
  return { ...(ca !== undefined && { ca }), ...(pair && { pair }), ...(root !== undefined && { root }) };
}
