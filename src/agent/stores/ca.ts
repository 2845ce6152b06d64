/** The CAs that verify a store's certificate, where the user names a Secret with some. */
import { getCACertificates } from 'node:tls';
import { MOUNTS } from '../../domain/agent-task.ts';
import { misconfigured } from '../failure.ts';
import type { ReadSecret } from './store.ts';

export interface Trust {
  readonly ca?: boolean;
  readonly caOnly?: boolean;
}

/**
 * With the public CAs, unless the user asks for the given ones only: each of some 140 public CAs could otherwise vouch
 * for another server under the name of an internal store. Empty: the public CAs alone.
 */
export async function trusting({ ca, caOnly }: Trust, secrets: ReadSecret): Promise<{ readonly ca?: string[] }> {
  if (ca !== true) return {};
  const given = (await secrets(MOUNTS.storeCa, 'ca.crt'))?.toString('utf8') ?? '';
  if (!given.includes('-----BEGIN CERTIFICATE-----'))
    throw misconfigured('the Secret with the CA of the bucket has no certificate in "ca.crt": add it');
  return { ca: caOnly === true ? [given] : [given, ...getCACertificates('default')] };
}
