/** Which Secrets a snapshot's spec refers to, and which keys its agent reads from them. Pure. */
import type { EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import type { MissingSecret } from './observed.ts';

export interface RequiredSecret {
  readonly secret: string;
  /** The Secret must have all keys of one of these lists. */
  readonly keys: readonly (readonly string[])[];
}

export function requiredSecretsOf({
  destination: { s3, gcs, azure },
  encryption,
}: EtcdSnapshotSpec): readonly RequiredSecret[] {
  const need = (
    ref: { readonly name?: string } | undefined,
    keys: RequiredSecret['keys'],
  ): readonly RequiredSecret[] => (ref?.name === undefined ? [] : [{ secret: ref.name, keys }]);
  const account = azure?.account === undefined ? ['AZURE_STORAGE_ACCOUNT'] : [];
  const where = azure?.endpoint === undefined ? account : [];
  return [
    ...need(s3?.credentialsSecretRef, [['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']]),
    ...need((s3 ?? gcs ?? azure)?.caSecretRef, [['ca.crt']]),
    ...need(gcs?.credentialsSecretRef, [['credentials.json']]),
    ...need(azure?.credentialsSecretRef, [
      [...account, 'AZURE_STORAGE_KEY'],
      [...where, 'AZURE_STORAGE_SAS_TOKEN'],
      ['AZURE_STORAGE_CONNECTION_STRING'],
    ]),
    ...need(encryption?.keySecretRef, [['key'], ['passphrase']]),
  ];
}

/** What is missing in a Secret with these keys; `undefined`: the Secret does not exist. */
export function missingIn(
  { secret, keys }: RequiredSecret,
  present: readonly string[] | undefined,
): MissingSecret | undefined {
  const wanted = keys.map((list) => list.join(' and ')).join(', or ');
  const lack = (message: string): MissingSecret => ({ reason: 'SecretMissing', message });
  if (!present) return lack(`Secret ${secret} does not exist: create it with ${wanted}`);
  if (keys.some((list) => list.every((key) => present.includes(key)))) return undefined;
  return lack(`Secret ${secret} lacks keys: it needs ${wanted}`);
}

/** It may exist: the snapshot waits for it as for a missing one. */
export const unreadable = ({ secret }: RequiredSecret, error: string): MissingSecret => ({
  reason: 'SecretUnreadable',
  message: `Secret ${secret} cannot be read: ${error}. Check that the operator has RBAC permission to get Secrets in this namespace, and that the API server can decrypt them`,
});
