/** Every generated file of the repository. `./dev gen` writes them; a test fails when one has drifted. */
import { generateKubeTypes } from './kube-types.ts';
import { generateEtcdStubs } from './protos.ts';

/** Path in the repository → content. */
export async function generate(): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>([['src/gen/kube.ts', await generateKubeTypes()]]);
  for (const [name, content] of await generateEtcdStubs()) files.set(`src/gen/etcd/${name}`, content);
  return files;
}
