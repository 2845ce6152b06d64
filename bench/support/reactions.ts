/** How soon the operator reacts to a change: from the watch event of the API server to the first write that follows. */
import type { Service } from '../../src/gen/kube.ts';
import type { Resource } from '../../src/kube/object.ts';
import { services } from '../../src/kube/resources.ts';
import type { Passed } from '../../test/support/faults/proxy.ts';
import { eventually, pause } from '../../test/support/servers/processes.ts';
import { type World } from '../../test/support/servers/world.ts';
import type { Ledger } from '../../test/sweep/ledger.ts';
import { Rig } from '../../test/sweep/rig.ts';
import { type Figure, summarise } from '../../tools/figures.ts';

const TIMES = 20;
const LIMIT = { atMost: 50 };

export async function reactions(
  world: World,
  ledger: Ledger,
  progress: (detail: string) => void,
): Promise<readonly Figure[]> {
  const rig = await Rig.build(world, ledger);
  await rig.start();
  world.kubelet.hold(true); // these clusters are bootstrapped, and wait
  try {
    const bootstrapped: number[] = [];
    const repaired: number[] = [];
    for (let n = 1; n <= TIMES; n++) {
      progress(`a change and the reaction, ${n} of ${TIMES}`);
      const name = `db-${n}`;
      const first = { verb: 'patch', resource: 'etcdclusters/status' } as const;
      bootstrapped.push(
        await answered(rig, first, { kind: 'EtcdCluster', name, is: 'put' }, () =>
          world.createCluster(rig.namespace, name, { replicas: 1 }),
        ),
      );
      await eventually('both Services', () => servicesOf(rig, name) === 2 || undefined);
      await pause(200); // writes of its first reconciles are not to be mistaken for the reaction
      const lost = `${name}-client`;
      repaired.push(
        await answered(
          rig,
          { verb: 'create', resource: 'services' },
          { kind: 'Service', name: lost, is: 'deleted' },
          () => remove(world, rig, lost),
        ),
      );
    }
    return [
      summarise('from a new cluster to the first write', bootstrapped, 'ms', LIMIT),
      summarise('from a lost Service to the first write', repaired, 'ms', LIMIT),
    ];
  } finally {
    world.kubelet.hold(false);
    await rig.stop();
  }
}

const servicesOf = (rig: Rig, name: string): number => {
  const resource: Resource<Service> = services;
  return rig.ledger
    .ofKind(resource, rig.namespace)
    .filter(({ metadata }) => metadata.name?.startsWith(`${name}-`) || metadata.name === name).length;
};

async function remove(world: World, rig: Rig, name: string): Promise<void> {
  const ref = { namespace: rig.namespace, name };
  const uid = (await world.admin.get(services, ref))?.metadata.uid ?? '';
  await world.admin.delete(services, ref, { uid });
}

/** The time from the watch event to the write. This process observes both. */
async function answered(
  rig: Rig,
  write: Pick<Passed, 'verb' | 'resource'>,
  change: { readonly kind: string; readonly name: string; readonly is: 'put' | 'deleted' },
  act: () => Promise<unknown>,
): Promise<number> {
  const observed = Promise.withResolvers<number>();
  const stop = rig.ledger.onChange(rig.namespace, (kind, before, after) => {
    const { name } = (after ?? before)?.metadata ?? {};
    if (kind === change.kind && name === change.name && (after === undefined) === (change.is === 'deleted'))
      observed.resolve(performance.now());
  });
  const seen = rig.writes().length;
  await act();
  const at = await observed.promise;
  stop();
  const answer = await eventually('the reaction to a change', () =>
    rig
      .writes()
      .slice(seen)
      .find(({ verb, resource }) => verb === write.verb && resource === write.resource),
  );
  return Math.max(0, answer.at - at);
}
