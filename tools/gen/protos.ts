/** The etcd client stubs, from our own minimal `proto/etcd/*.proto`, with buf. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../paths.ts';
import { run } from '../process.ts';

const bin = (name: string): string => join(root, 'node_modules', '.bin', name);

/** File name under `src/gen/etcd` → content. */
export async function generateEtcdStubs(): Promise<ReadonlyMap<string, string>> {
  const out = await mkdtemp(join(tmpdir(), 'etcd-stubs-'));
  const template = {
    version: 'v2',
    plugins: [{ local: bin('protoc-gen-es'), out, opt: ['target=ts', 'import_extension=ts', 'erasable_syntax=true'] }],
  };
  try {
    await run(bin('buf'), ['generate', join(root, 'proto'), '--template', JSON.stringify(template)], {
      // Everything it needs is local: no registry, no cache of the user.
      env: { BUF_CACHE_DIR: join(out, '.cache') },
    });
    const folder = join(out, 'etcd');
    const files = (await readdir(folder)).filter((name) => name.endsWith('.ts')).sort();
    return new Map(await Promise.all(files.map(async (f) => [f, await readFile(join(folder, f), 'utf8')] as const)));
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}
