/** Which Secrets and keys a snapshot needs. */
import { expect, test } from 'vitest';
import { aSnapshot, s3 } from '../../../test/support/builders/snapshot.ts';
import type { EtcdSnapshotSpec } from '../../api/etcd-snapshot.ts';
import { missingIn, requiredSecretsOf } from './required-secrets.ts';

type Present = Readonly<Record<string, readonly string[]>>;
const lacks = (spec: Partial<EtcdSnapshotSpec>, present: Present): readonly string[] =>
  requiredSecretsOf(aSnapshot({ spec }).spec).flatMap((need) => missingIn(need, present[need.secret])?.message ?? []);

const ref = { credentialsSecretRef: { name: 'keys' } };
const aws = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];
const key = { keySecretRef: { name: 'k' } };
test.each<[string, Partial<EtcdSnapshotSpec>, Present, readonly string[]]>([
  ['the Secret is complete', {}, { keys: [...aws, 'AWS_SESSION_TOKEN'] }, []],
  [
    'the Secret does not exist',
    {},
    {},
    ['Secret keys does not exist: create it with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
  ],
  [
    'the Secret lacks a key',
    {},
    { keys: ['AWS_ACCESS_KEY_ID'] },
    ['Secret keys lacks keys: it needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY'],
  ],
  ['a cloud identity needs no Secret', { destination: { s3: { endpoint: 'https://s3', bucket: 'b' } } }, {}, []],
  [
    'a CA and an encryption key',
    { destination: { s3: { ...s3, caSecretRef: { name: 'ca' } } }, encryption: key },
    { keys: aws, ca: ['tls.crt'], k: ['key'] },
    ['Secret ca lacks keys: it needs ca.crt'],
  ],
  [
    'no encryption key',
    { encryption: key },
    { keys: aws },
    ['Secret k does not exist: create it with key, or passphrase'],
  ],
  [
    'the CA of a container of Azure',
    { destination: { azure: { container: 'c', caSecretRef: { name: 'ca' } } } },
    { ca: ['tls.crt'] },
    ['Secret ca lacks keys: it needs ca.crt'],
  ],
  ['a passphrase in place of a key', { encryption: key }, { keys: aws, k: ['passphrase'] }, []],
  [
    'of Google',
    { destination: { gcs: { bucket: 'b', ...ref } } },
    { keys: ['key.json'] },
    ['Secret keys lacks keys: it needs credentials.json'],
  ],
  [
    'of Azure, with the account in the Secret',
    { destination: { azure: { container: 'c', ...ref } } },
    { keys: ['AZURE_STORAGE_KEY'] },
    [
      'Secret keys lacks keys: it needs AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_CONNECTION_STRING',
    ],
  ],
  [
    'of Azure, with the account in the spec',
    { destination: { azure: { container: 'c', account: 'a', ...ref } } },
    { keys: ['AZURE_STORAGE_SAS_TOKEN'] },
    [],
  ],
  [
    'of Azure elsewhere, with a token: the account is part of the address',
    { destination: { azure: { container: 'c', endpoint: 'http://h/acc', ...ref } } },
    { keys: ['AZURE_STORAGE_SAS_TOKEN'] },
    [],
  ],
  [
    'of Azure elsewhere, with a key: it is of an account',
    { destination: { azure: { container: 'c', endpoint: 'http://h/acc', ...ref } } },
    { keys: ['AZURE_STORAGE_KEY'] },
    [
      'Secret keys lacks keys: it needs AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN, or AZURE_STORAGE_CONNECTION_STRING',
    ],
  ],
  [
    'of Azure, all in one',
    { destination: { azure: { container: 'c', ...ref } } },
    { keys: ['AZURE_STORAGE_CONNECTION_STRING'] },
    [],
  ],
  ['of a volume', { destination: { pvc: { claimName: 'c' } } }, {}, []],
])('%s', (_what, spec, present, expected) => {
  expect(lacks(spec, present)).toEqual(expected);
});
