/** `up` and `down` on their own cluster: whatever was killed in whatever state, the next command works and nothing is left behind. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { cgroupExists, processesIn } from '../../../local/cgroup.ts';
import { down, running, up } from '../../../local/cluster.ts';
import { isAlive } from '../../../local/daemon.ts';
import { clusterCgroup, clusterDir, clusterId, hostLink, readState, writeState } from '../../../local/state.ts';
import { root } from '../../../tools/paths.ts';
import { run } from '../../../tools/process.ts';
import { becomes, testCluster } from '../../support/journeys/journey.ts';

afterAll(() => down('scratch'));

/** Everything of ours that the kernel or the disk could still have. */
async function traces(): Promise<readonly string[]> {
  const octet = `10.${readStateOctet}.`;
  const routes = readStateOctet === undefined ? '' : (await run('ip', ['route', 'show', 'table', 'all'])).stdout;
  const loops = (await run('losetup', ['--list', '--noheadings', '--output', 'BACK-FILE'])).stdout;
  return [
    ...processesIn(clusterCgroup('scratch')).map((pid) => `process ${pid}`),
    ...(cgroupExists(clusterCgroup('scratch')) ? ['cgroup'] : []),
    ...(existsSync(clusterDir('scratch')) ? ['folder'] : []),
    ...(existsSync(`/sys/class/net/${hostLink(clusterId('scratch'))}`) ? ['interface'] : []),
    ...(readFileSync('/proc/self/mountinfo', 'utf8').includes(clusterDir('scratch')) ? ['mount'] : []),
    ...(routes.includes(octet) ? ['route'] : []),
    ...(loops.includes(clusterDir('scratch')) ? ['loop device'] : []),
  ];
}
let readStateOctet: number | undefined;

/** `up` in its own process, to be killed at a chosen moment. */
function upInChild(): ReturnType<typeof spawn> {
  const script = `import('./local/cluster.ts').then((m) => m.up('scratch'))`;
  return spawn(process.execPath, ['--eval', script], { cwd: root, stdio: 'ignore' });
}

test('runs beside another cluster in its own address range, a second up finds it, and down leaves no trace', async () => {
  const scratch = await up('scratch');
  readStateOctet = scratch.state.range.octet;
  const other = await testCluster();
  expect(scratch.state.range).not.toEqual(other.state.range);
  expect(await scratch.kubectl(['get', 'nodes', '-o', 'name'])).toBe('node/node-1\nnode/node-2\nnode/node-3\n');
  expect(await traces()).toContain('route');

  const started = performance.now();
  expect((await up('scratch')).state).toEqual(scratch.state);
  expect(performance.now() - started).toBeLessThan(3_000);

  await down('scratch');
  expect(await traces()).toEqual([]);
  expect(await running('scratch')).toBeUndefined();
  expect(await other.kubectl(['get', '--raw', '/readyz'])).toBe('ok');
});

test.runIf(process.env['DEV_TEST_ALL']).each([400, 1_500, 4_000])(
  'after an up that was killed after %i ms, down and another up work',
  async (ms) => {
    const child = upInChild();
    await sleep(ms);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    expect(await running('scratch')).toBeUndefined();
    await down('scratch');
    expect(await traces()).toEqual([]);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])('up replaces what a killed up left behind', async () => {
  const child = upInChild();
  await sleep(3_000);
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('close', resolve));
  const scratch = await up('scratch');
  expect(await scratch.kubectl(['get', 'nodes', '-o', 'name'])).toContain('node/node-3');
});

test.runIf(process.env['DEV_TEST_ALL'])(
  'up detects a dead API server and starts the cluster again, with the machine’s kernel settings unchanged',
  async () => {
    const setting = '/proc/sys/kernel/keys/root_maxkeys';
    const before = readFileSync(setting, 'utf8');
    writeFileSync(setting, '999999');
    onTestFinished(() => writeFileSync(setting, before));
    const apiServer = readState('scratch')?.controlPlane[1] ?? 0;
    process.kill(apiServer, 'SIGKILL');
    await becomes('the cluster to be down', async () => expect(await running('scratch')).toBeUndefined());
    const scratch = await up('scratch');
    expect(await scratch.kubectl(['get', '--raw', '/readyz'])).toBe('ok');
    expect(readFileSync(setting, 'utf8').trim()).toBe('999999');
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'down works when the control plane and every record of the cluster are lost',
  async () => {
    const state = readState('scratch');
    for (const pid of processesIn(clusterCgroup('scratch')))
      if (pid === state?.controlPlanePid) process.kill(pid, 'SIGKILL');
    await run('rm', ['-f', join(clusterDir('scratch'), 'state.json')]);
    await down('scratch');
    expect(await traces()).toEqual([]);
  },
);

test.runIf(process.env['DEV_TEST_ALL'])(
  'after a reboot, a state folder with reused process ids is no obstacle, and no other process is killed',
  async () => {
    const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
    const pid = bystander.pid ?? 0;
    const pids = { switchPid: pid, controlPlanePid: pid, controlPlane: [pid] };
    const rest = { images: [], nodes: [], complete: true, s3: false };
    writeState('scratch', { id: clusterId('scratch'), range: { octet: 249 }, ...pids, ...rest });
    expect(await running('scratch')).toBeUndefined();
    await down('scratch');
    expect(await traces()).toEqual([]);
    expect(isAlive(pid)).toBe(true);
    bystander.kill();
  },
);
