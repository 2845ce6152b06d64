/** Every generated file of the repository. `./dev gen` writes them; a test fails when one has drifted. */
import { generateApiReference } from './api-reference.ts';
import { generateChart } from './chart.ts';
import { generateCliReference } from './cli-reference.ts';
import { generateFlagsReference } from './flags-reference.ts';
import { generateKubeTypes } from './kube-types.ts';
import { generateEtcdStubs } from './protos.ts';

/** Path in the repository → content. */
export async function generate(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>([['src/gen/kube.ts', await generateKubeTypes()]]);
  files.set('docs/api.md', generateApiReference());
  files.set('docs/cli.md', generateCliReference());
  files.set('docs/flags.md', generateFlagsReference());
  for (const [name, content] of await generateEtcdStubs()) files.set(`src/gen/etcd/${name}`, content);
  for (const [path, content] of await generateChart()) files.set(path, content);
  return files;
}
