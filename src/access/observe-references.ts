/** Reads, by name, what a spec refers to: where the administrator demands it, only labelled objects may be used. */
import { lacksLabel, lacksObject, mayReference, type References, type Tenancy } from '../domain/tenancy.ts';
import type { Client } from '../kube/client.ts';
import type { KubeObject, Resource } from '../kube/object.ts';
import { persistentVolumeClaims, secrets } from '../kube/resources.ts';
import { tryGet } from '../kube/try-get.ts';

/**
 * One message for each object that may not be used. One that does not exist is among them: its Pod would wait for it, and mount what
 * another user creates under that name later, without the label.
 */
export async function unlabelledReferences(
  client: Pick<Client, 'get'>,
  namespace: string,
  references: References,
  { requireReferenceLabel }: Tenancy,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!requireReferenceLabel) return [];
  const check = async (resource: Resource, name: string): Promise<readonly string[]> => {
    const read = await tryGet<KubeObject>(client, resource, { namespace, name }, signal);
    if (!read.ok) return [`${resource.kind} ${name} cannot be read: ${read.message}`];
    if (!read.object) return [lacksObject(resource.kind, name)];
    return mayReference(read.object.metadata.labels) ? [] : [lacksLabel(resource.kind, name)];
  };
  const checks = [
    ...references.secrets.map((name) => check(secrets, name)),
    ...references.claims.map((name) => check(persistentVolumeClaims, name)),
  ];
  return (await Promise.all(checks)).flat();
}
