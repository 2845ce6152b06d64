/** `kubectl etcd certs`: the certificates of a cluster, and how far a CA rotation is. */
import { certificateRows } from '../assess/report.ts';
import { trustRows } from '../assess/trust.ts';
import { type Context, UserError } from '../context.ts';
import { clusterAccess } from '../gather/access.ts';
import { readCluster, readMembers } from '../gather/objects.ts';
import { formatOf, structured } from '../output.ts';
import { certificatesText } from '../render/certificates.ts';

export interface CertsFlags {
  readonly output?: string;
  readonly check?: boolean;
}

const UNHEALTHY = 2;

export async function certs(context: Context, name: string, flags: CertsFlags): Promise<number> {
  const format = formatOf(flags.output);
  const { client, namespace, now } = context;
  const cluster = await readCluster(client, { namespace, name });
  if (cluster.spec.tls === undefined) {
    context.note(`${name} has no TLS: neither clients nor peers are encrypted`);
    return 0;
  }
  const members = await readMembers(client, cluster);
  const { certificates } = await clusterAccess(client, cluster, members, () => undefined, now);
  if (!certificates || certificates.unreadable)
    throw new UserError(
      `the Secrets with the certificates could not be read: ${certificates?.unreadable?.message ?? 'there are none'}`,
    );
  const rows = certificateRows(certificates);
  const trust = trustRows(certificates);
  if (format === 'json' || format === 'yaml') context.print(await structured(format, { certificates: rows, trust }));
  else context.print(certificatesText(context.paper, rows, trust, now()));
  const bad = rows.some(({ notAfter, problems }) => problems.length > 0 || (notAfter ?? 0) <= now());
  return flags.check && bad ? UNHEALTHY : 0;
}
