/** Faults in the loop itself. */
import { faults, type Mutant } from './mutant.ts';

export const runtime: readonly Mutant[] = [
  ...faults('src/runtime/execute.ts', [
    [
      'an act before its record',
      '  if (plan.latch) await writeStatus({ ...plan.status, ...plan.latch }).then(tell);\n  const { outcome, refusal } = await takeAll(plan.steps, options, signal);',
      '  const { outcome, refusal } = await takeAll(plan.steps, options, signal);\n  if (plan.latch) await writeStatus({ ...plan.status, ...plan.latch }).then(tell);',
    ],
    [
      'a step after one that failed',
      '      if (!isRefusal(error)) throw error;\n      return',
      '      if (!isRefusal(error)) continue;\n      return',
    ],
    [
      'a step after one that was refused',
      "      return { outcome: { is: 'done' }, refusal: error };",
      '      continue;',
    ],
    [
      'a refusal that keeps the status from being told',
      '      if (!isRefusal(error)) throw error;\n',
      '      throw error;\n',
    ],
    [
      'a status that overwrites a newer one',
      'const body = { metadata: { uid, resourceVersion }, status };',
      'const body = { metadata: { uid }, status };',
    ],
    [
      'a status on another object of the name',
      'const body = { metadata: { uid, resourceVersion }, status };',
      'const body = { status };',
    ],
    [
      'a deletion of what has changed since it was looked at',
      '{ uid, ...(resourceVersion && { resourceVersion }) };\n      const left',
      '{ uid };\n      const left',
    ],
    [
      'a deletion of another object of the name',
      'refOf(step.what), preconditions, signal)',
      'refOf(step.what), { uid: (await client.get(resource, refOf(step.what), signal))?.metadata.uid ?? uid }, signal)',
    ],
    [
      'a patch of another object of the name',
      'metadata: { ...metadata, uid, ...(resourceVersion',
      'metadata: { ...metadata, ...(resourceVersion',
    ],
    [
      'a patch of what has changed since it was looked at',
      'uid, ...(resourceVersion && { resourceVersion }) } };',
      'uid } };',
    ],
    [
      'a status that is lost when a step is refused',
      '  if (!plan.latch && !options.mayWait(plan.status)) await writeStatus(plan.status);',
      '  if (!refusal && !plan.latch && !options.mayWait(plan.status)) await writeStatus(plan.status);',
    ],
    ['a refusal that nobody hears of', '  throw refusal;\n', '  return outcome;\n'],
    [
      'a write that the next pass does not wait for',
      '    resourceVersion: object.metadata.resourceVersion,\n    object,\n',
      '    resourceVersion: undefined,\n    object,\n',
    ],
  ]),
  ...faults('src/runtime/controller.ts', [
    ['a pass that does not see what the one before it has made', '      await this.#barrier(key, limit);\n', ''],
    [
      'a pass that does not see that something is gone',
      '      for (const { name, uid } of gone) await store.gone(refKey({ namespace, name }), uid, signal);\n',
      '',
    ],
    [
      'a pass that waits for the wrong one of two writes',
      'old === undefined || (fresh !== undefined && isAtLeast(fresh, old)) ? fresh : old',
      'fresh',
    ],
    ['two that undo each other at full speed', 'return times > REPEATS ?', 'return times > 1_000 ?'],
    [
      'a refusal of etcd that the next pass does not know',
      '      this.#refused(key, outcome.why, outcome.kind);\n',
      '',
    ],
    ['a refusal that begins anew with every call', 'since: goesOn ? before.since : at', 'since: at'],
    [
      'a refusal of another kind that goes on',
      'before !== undefined && before.kind === kind &&',
      'before !== undefined &&',
    ],
    ['a refusal that goes on over a long pause', ' && at - before.at < REFUSED_AGAIN_MS', ''],
    ['waiting for a write that the cache never shows', ' || (write.object && !store.shows(write.object))', ''],
    ['words that are written while others wait for their turn', 'depth > 0 ||', 'depth > 9 ||'],
    ['words that are written while many passes run', ' || running > CONCURRENCY / 2 ?', ' ?'],
    ['a refusal that is told for ever', '    this.#refusals.delete(key);\n    if (plan', '    if (plan'],
  ]),
  ...faults('src/cluster/controller.ts', [
    [
      'a fault that waits behind a thousand new clusters',
      "!after.status ? 'resync' : 'change'",
      "!after.status ? 'change' : 'change'",
    ],
  ]),
  ...faults('src/kube/http-client.ts', [
    ['all Secrets that are asked for where none is named', "if (ref.name === '') return undefined;", ''],
    ['creations that crowd each other out', 'new Turns(CREATES_AT_ONCE)', 'new Turns(500)'],
  ]),
  ...faults('src/runtime/claims.ts', [
    [
      'a status that is sent while another controller changes the object',
      'return this.#changing.has(object);',
      'return false;',
    ],
    [
      'a change that is sent while a status is on its way',
      '      await this.#telling.get(object)?.catch(() => undefined);\n',
      '',
    ],
    ['a change that is not made, because a status failed', '?.catch(() => undefined);', ';'],
    [
      'a claim that ends before the cache has the change',
      '      void cached(written).then(\n        () => this.#release(object),\n        () => this.#release(object),\n      );\n',
      '      void cached(written);\n      this.#release(object);\n',
    ],
    [
      'a status that is never sent, because a change failed',
      '      this.#release(object);\n      throw error;',
      '      throw error;',
    ],
    [
      'a claim of two that ends with the first',
      '    if (left > 0) this.#changing.set(object, left);\n    else this.#changing.delete(object);',
      '    this.#changing.delete(object);',
    ],
  ]),
  ...faults('src/runtime/plan.ts', [
    ['a decision that holds for another object of the name', "  uid: object.metadata.uid ?? '',\n", "  uid: '',\n"],
    [
      'a strict decision that holds for any version',
      "  ...(strictly === 'this version' &&\n    object.metadata.resourceVersion !== undefined && { resourceVersion: object.metadata.resourceVersion }),\n",
      '',
    ],
    [
      'the last answer that wins',
      '    if (answer) return { name, answer };',
      '    if (answer && (rules.at(-1)?.rule === rule)) return { name, answer };',
    ],
    ['a plan without its record', '    ...(answer.latch && { latch: answer.latch }),\n', ''],
  ]),
  ...faults('src/etcd/guarded.ts', [
    ['a change by a process that has lost the lease', 'mayChange() ? call', 'true ? call'],
    ['a removal by a process that has lost the lease', "'promote', 'remove', 'update'", "'promote', 'update'"],
  ]),
  ...faults('src/etcd/failover.ts', [
    ['a change that is made at two members', '    if (!repeatable && mayHaveHappened(last.error)) return last;\n', ''],
    ['a member that misjudges its peers, and is the only one asked', "  'unhealthyCluster',\n", ''],
  ]),
  ...faults('src/api/names.ts', [
    ['members of two clusters with the same names', 'shortName(clusterUid, counter)', 'shortName(cluster, counter)'],
    ['the same name for every member', 'shortName(clusterUid, counter)', 'shortName(clusterUid, 1)'],
  ]),
];
