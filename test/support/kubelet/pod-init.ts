/** The init containers of a member's Pod: runs the agent until it has succeeded. */
import { dirname, join } from 'node:path';
import { TASK_VARIABLE, type Task } from '../../../src/domain/agent-task.ts';
import type { Container, ContainerState, ContainerStatus, Pod } from '../../../src/gen/kube.ts';
import { root } from '../../../tools/paths.ts';
import { type Ended, placeOf } from '../servers/agent-place.ts';
import { pause } from '../servers/processes.ts';
import type { Site } from './pod-run.ts';

const RESTART_MS = 300;
/** Copies the agent into a volume: here the agent is already in place. */
const COPIES = 'install-tools';

export interface Before {
  /** The folder in place of the member's volume. */
  readonly data: string;
  readonly over: () => boolean;
  readonly report: (statuses: readonly ContainerStatus[]) => Promise<void>;
}

const statusOf = (
  { name, image = '' }: Container,
  state: ContainerState,
  restartCount = 0,
  lastState?: ContainerState,
): ContainerStatus => ({
  name,
  image,
  imageID: image,
  ready: state.terminated?.exitCode === 0,
  restartCount,
  state,
  ...(lastState && { lastState }),
});
const terminated = ({ exitCode, message }: Ended): ContainerState => ({
  terminated: {
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    finishedAt: new Date().toISOString(),
    ...(message !== undefined && { message }),
  },
});

export async function runBefore(site: Site, pod: Pod, { data, over, report }: Before): Promise<void> {
  const containers = pod.spec?.initContainers ?? [];
  const waiting: ContainerState = { waiting: { reason: 'PodInitializing' } };
  const statuses = containers.map((container) => statusOf(container, waiting));
  const say = (i: number, container: Container, ...what: [ContainerState, number, ContainerState?]): Promise<void> => {
    statuses[i] = statusOf(container, ...what);
    return report(statuses);
  };
  for (const [i, container] of containers.entries()) {
    let last: ContainerState | undefined;
    for (let tries = 0; !over(); tries++) {
      await say(i, container, { running: { startedAt: new Date().toISOString() } }, tries, last);
      const ended = container.name === COPIES ? { exitCode: 0 } : await runAgent(site, pod, container, data, over);
      if (over()) return;
      if (ended.exitCode === 0) {
        await say(i, container, terminated(ended), tries, last);
        break;
      }
      last = terminated(ended);
      await say(i, container, { waiting: { reason: 'CrashLoopBackOff' } }, tries + 1, last);
      await pause(RESTART_MS);
    }
  }
}

async function runAgent(
  { client, folder, processes, etcd }: Site,
  pod: Pod,
  container: Container,
  dataDir: string,
  over: () => boolean,
): Promise<Ended> {
  const alone: Pod = { ...pod, spec: { ...pod.spec, containers: [container] } };
  const { env, ended } = await placeOf(client, folder, alone, container.name, over);
  const task = { ...(JSON.parse(env[TASK_VARIABLE] ?? '{}') as Task), dataDir };
  const child = processes.start(
    `${pod.metadata.name}-${container.name}`,
    process.execPath,
    [join(root, 'src', 'bin', 'agent.ts'), ...(container.args ?? [])],
    { ...env, [TASK_VARIABLE]: JSON.stringify(task), ETCDUTL_PATH: join(dirname(etcd), 'etcdutl') },
  );
  return ended((await child.ended) ?? 137);
}
