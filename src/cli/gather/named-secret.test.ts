import { describe, expect, test } from 'vitest';
import type { Secret } from '../../gen/kube.ts';
import { namedSecret } from './named-secret.ts';

const TLS = { 'ca.crt': 'CA', 'tls.crt': 'CERT', 'tls.key': 'KEY' };

function named(data: Readonly<Record<string, string>> | undefined, given: string | undefined = 'own') {
  const asked: unknown[] = [];
  const encoded = Object.entries(data ?? {}).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'own' },
    data: Object.fromEntries(encoded) as Record<string, string>,
  };
  const get = ((_: unknown, ref: unknown) => {
    asked.push(ref);
    return Promise.resolve(data && secret);
  }) as never;
  return { asked, found: namedSecret({ get }, 'ns', given) };
}

describe('the Secret of -s', () => {
  test('has a password, by default of root, or a client certificate, or both', async () => {
    expect(await named({ password: 'p' }).found).toEqual({ account: { user: 'root', password: 'p' } });
    expect(await named({ username: 'u', password: 'p' }).found).toEqual({ account: { user: 'u', password: 'p' } });
    const certificate = { ca: 'CA', cert: 'CERT', key: 'KEY' };
    expect(await named(TLS).found).toEqual({ certificate });
    expect(await named({ ...TLS, password: 'p' }).found).toEqual({
      account: { user: 'root', password: 'p' },
      certificate,
    });
  });

  test('is in the namespace, or in the one that is named', async () => {
    const [own, other] = [named({ password: 'p' }), named({ password: 'p' }, 'there/own')];
    await Promise.all([own.found, other.found]);
    expect([...own.asked, ...other.asked]).toEqual([
      { namespace: 'ns', name: 'own' },
      { namespace: 'there', name: 'own' },
    ]);
  });

  test.each<[string, Readonly<Record<string, string>> | undefined, string]>([
    ['there is none', undefined, 'there is no Secret own in namespace ns'],
    ['nothing in it', { username: 'u' }, 'neither a password nor tls.crt and tls.key'],
    ['a certificate without its key', { 'tls.crt': 'CERT', 'ca.crt': 'CA' }, 'neither a password'],
    ['no CA to verify members with', { 'tls.crt': 'CERT', 'tls.key': 'KEY' }, 'has no ca.crt'],
  ])('is refused: %s', async (_, data, says) => {
    await expect(named(data).found).rejects.toThrow(says);
  });
});
