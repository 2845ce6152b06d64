/** `kubectl etcd report`: everything that a supporter needs, in one file, without secrets. */
import { writeFile } from 'node:fs/promises';
import { archive } from '../archive.ts';
import type { Context } from '../context.ts';
import { gatherCluster } from '../gather/cluster.ts';
import { gatherReport } from '../gather/report.ts';
import { bytes, plural } from '../render/units.ts';

export interface ReportFlags {
  readonly out?: string;
}

export async function report(context: Context, cluster: string, { out }: ReportFlags): Promise<number> {
  const facts = await gatherCluster(context, cluster);
  const files = await gatherReport(context, facts);
  const day = new Date(facts.now).toISOString().slice(0, 19).replaceAll(':', '-');
  const path = out ?? `etcd-report-${context.namespace}-${cluster}-${day}.tar.gz`;
  const content = archive(files, facts.now);
  await writeFile(path, content, { mode: 0o600 });
  context.print(path);
  context.note(
    `${plural(files.length, 'file')}, ${bytes(content.length)}. Values of Secrets, keys and tokens are removed; read it before you send it: names, addresses and logs are in it`,
  );
  return 0;
}
