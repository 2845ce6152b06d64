/** Creates or patches a managed Secret, with the resourceVersion that was read: of two writers, neither overwrites the other. */
import type { Secret } from '../../../gen/kube.ts';
import type { Client } from '../../../kube/client.ts';
import { secrets } from '../../../kube/resources.ts';

/** The contents of a Secret, as text; `null` removes a key. */
export type Data = Readonly<Record<string, string | null>>;
export type Unwritten = Omit<Secret, 'data'> & { readonly data: Data };

/** As Kubernetes stores it. */
export const encoded = (data: Data): Data =>
  Object.fromEntries(
    Object.entries(data).map(([key, text]) => [key, text === null ? null : Buffer.from(text).toString('base64')]),
  );

export const withoutNull = (data: Data): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(data).filter((entry): entry is [string, string] => entry[1] !== null));

export async function writeSecret(
  client: Pick<Client, 'create' | 'patch'>,
  built: Unwritten,
  current: Secret | undefined,
  signal: AbortSignal,
  annotations?: Secret['metadata']['annotations'],
): Promise<void> {
  if (!current) {
    await client.create(secrets, { ...built, data: withoutNull(built.data) }, signal);
    return;
  }
  const { name = '', namespace = '', uid, resourceVersion } = current.metadata;
  const body = { metadata: { uid, resourceVersion, ...(annotations && { annotations }) }, data: built.data };
  await client.patch(secrets, { namespace, name }, body, { signal });
}
