/** Names a request as kubectl would: `list pods`, `patch etcdmembers/status`. For metrics, logs and the fault proxy. */

export interface CallName {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'patch' | 'update' | 'delete' | 'dryRun' | 'other';
  /** The plural of the kind, with the subresource if there is one; the request path when it is not about objects. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

const VERBS: Readonly<Record<string, CallName['verb']>> = {
  POST: 'create',
  PATCH: 'patch',
  PUT: 'update',
  DELETE: 'delete',
};

export function nameCall(method: string, path: string, query: Readonly<Record<string, string>> = {}): CallName {
  const parts = path.split('/').filter((part) => part !== '');
  const rest = parts[0] === 'api' ? parts.slice(2) : parts[0] === 'apis' ? parts.slice(3) : [];
  // `namespaces/x/…` addresses objects inside the namespace; `namespaces/x` alone is the Namespace object itself.
  const inside = rest[0] === 'namespaces' && rest.length > 2;
  const [plural, name = '', subresource] = inside ? rest.slice(2) : rest;
  if (plural === undefined)
    return { verb: method === 'GET' ? 'get' : 'other', resource: path, namespace: '', name: '' };
  const reading = query['watch'] === 'true' ? 'watch' : name === '' ? 'list' : 'get';
  return {
    verb: method === 'GET' ? reading : query['dryRun'] === 'All' ? 'dryRun' : (VERBS[method] ?? 'other'),
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    namespace: inside ? (rest[1] ?? '') : '',
    name,
  };
}
