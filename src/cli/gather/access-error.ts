/** Errors of the API server for users: what is missing, and whom to ask for it. */
import { ApiError } from '../../kube/errors.ts';
import type { Transport } from '../../kube/transport.ts';

const FORBIDDEN =
  /cannot (\w+) resource "([^"]+)"(?: in API group "([^"]*)")?(?: (?:in|at) the (?:namespace "([^"]+)"|cluster scope))?/;

/** One sentence: of a refused request, the verb and the resource that the user lacks. */
export function explain(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.code === 401) return 'the API server does not accept your credentials: authenticate again';
  if (error.code === 0) return `the API server did not respond: ${error.serverMessage}`;
  const [, verb, resource, group, namespace] = (error.code === 403 && FORBIDDEN.exec(error.serverMessage)) || [];
  if (verb === undefined || resource === undefined) return error.serverMessage;
  const full = group ? `${resource}.${group}` : resource;
  const where = namespace === undefined ? 'in the whole Kubernetes cluster' : `in namespace ${namespace}`;
  return `you lack the permission to ${verb} ${full} ${where}`;
}

export interface Permission {
  readonly verb: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly group?: string;
  readonly namespace?: string;
}

interface Review {
  readonly status?: { readonly allowed?: boolean };
}

/** Whether this user may do it; `undefined` when the API server does not answer that. */
export async function isAllowed(transport: Transport, permission: Permission): Promise<boolean | undefined> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: permission },
  };
  try {
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
    return (await transport.json<Review>(path, { method: 'POST', body })).status?.allowed === true;
  } catch {
    return undefined;
  }
}

/** The reason of a refused WebSocket is not visible to its client, so the API server is asked for the permission. `undefined`: it is there. */
export async function deniedForward(transport: Transport, namespace: string): Promise<string | undefined> {
  const verbs = ['get', 'create'];
  const allowed = await Promise.all(
    verbs.map((verb) => isAllowed(transport, { verb, resource: 'pods', subresource: 'portforward', namespace })),
  );
  const lacking = verbs.filter((_, index) => allowed[index] === false);
  return lacking.length === 0
    ? undefined
    : `you lack the permission to ${lacking.join(' and ')} pods/portforward in namespace ${namespace}`;
}
