/** `/manager snapshot-agent` with the environment that the Go operator's tools give it: etcd-migrate takes its backup so. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished } from 'vitest';
import { MOUNTS, SNAPSHOT_AGENT } from '../../src/domain/agent-task.ts';
import { root } from '../../tools/paths.ts';
import { run } from '../../tools/process.ts';
import { sha256 } from '../support/servers/snapshot-files.ts';
import { startS3 } from '../support/servers/stores.ts';
import { filesIn, fill, it, judged, PATIENCE_MS, type Scene, VERSION } from './agent-snapshot-kit.ts';

const program = join(root, 'src', 'bin', 'operator.ts');
const runAsGo = ({ agent }: Scene, env: Readonly<Record<string, string>>) =>
  run(process.execPath, [program, SNAPSHOT_AGENT], {
    allowFailure: true,
    env: { ...process.env, AGENT_ROOT: agent.root, AGENT_RESULT: join(agent.root, 'result'), ...env },
  });
const about = (endpoint: string) => ({
  ETCD_ENDPOINTS: endpoint,
  SNAPSHOT_NAME: 'db-migration',
  SNAPSHOT_UID: 'uid-of-the-snapshot',
});
const marker = /^snapshot uploaded: uri="(.*)" size=(\d+) sha256=([0-9a-f]{64})$/m;

describe.concurrent('takes a snapshot', { timeout: PATIENCE_MS }, () => {
  it('into a volume, and prints the line that the Go operator looks for', async ({ scene }) => {
    const node = await scene.lab.seed({ version: VERSION });
    await fill(scene, node, 5);
    const env = {
      ...about(node.endpoint),
      SNAPSHOT_DEST_KIND: 'pvc',
      PVC_MOUNT_PATH: MOUNTS.volume,
      PVC_SUBPATH: '/old/',
    };
    const { code, stdout, stderr } = await runAsGo(scene, env);
    expect([code, stderr]).toEqual([0, expect.stringContaining('snapshot: done')]);
    expect(filesIn(scene)).toContain('old/db-migration.db');
    const bytes = readFileSync(join(scene.volume, 'old', 'db-migration.db'));
    const uri = 'file:///snapshot/data/old/db-migration.db';
    expect(marker.exec(stdout)?.slice(1)).toEqual([uri, String(bytes.length), sha256(bytes)]);
    await judged(scene, VERSION, bytes);
    expect((await runAsGo(scene, env)).stdout, 'a retry finds it').toBe(stdout);
  });

  it('into a bucket, with the credentials of its environment', async ({ scene }) => {
    const s3 = await startS3();
    onTestFinished(() => s3.close());
    const node = await scene.lab.seed({ version: VERSION });
    const { place } = s3;
    if (place.kind !== 's3') throw new Error('it is a bucket');
    const secret = (key: string): string => String(s3.secrets[`${MOUNTS.credentials}/${key}`] ?? '');
    const { code, stdout, stderr } = await runAsGo(scene, {
      ...about(node.endpoint),
      SNAPSHOT_DEST_KIND: 's3',
      S3_ENDPOINT: place.endpoint,
      S3_BUCKET: place.bucket,
      S3_KEY: 'prod/',
      S3_REGION: place.region,
      S3_FORCE_PATH_STYLE: String(place.forcePathStyle),
      AWS_ACCESS_KEY_ID: secret('AWS_ACCESS_KEY_ID'),
      AWS_SECRET_ACCESS_KEY: secret('AWS_SECRET_ACCESS_KEY'),
    });
    expect([code, stderr]).toEqual([0, expect.stringContaining('snapshot: done')]);
    expect(marker.exec(stdout)?.[1]).toBe(`s3://${place.bucket}/prod/db-migration.db`);
    expect(stdout + stderr).not.toContain(secret('AWS_SECRET_ACCESS_KEY'));
  });

  it('or ends with an error and without that line', async ({ scene }) => {
    const { code, stdout, stderr } = await runAsGo(scene, {
      ...about('http://127.0.0.1:1'),
      SNAPSHOT_DEST_KIND: 'pvc',
    });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('NoMemberReachable');
    const unset = await runAsGo(scene, { SNAPSHOT_DEST_KIND: 'pvc' });
    expect(unset.code).not.toBe(0);
    expect(unset.stderr).toContain('ETCD_ENDPOINTS is not set');
  });
});
