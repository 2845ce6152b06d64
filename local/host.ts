/** What a machine needs to run nodes, and the Debian packages that provide what is missing. */
import { existsSync } from 'node:fs';
import { root } from '../tools/paths.ts';
import { run } from '../tools/process.ts';
import { Failure, step } from '../tools/terminal.ts';

/** A package is installed only when its file is missing: a containerd that came with Docker is kept. */
const NEEDED: readonly (readonly [string, string, ...string[]])[] = [
  ['containerd', '/usr/bin/containerd', '/usr/local/bin/containerd'],
  ['runc', '/usr/sbin/runc', '/usr/bin/runc', '/usr/local/sbin/runc'],
  ['containernetworking-plugins', '/usr/lib/cni/bridge'],
  ['nftables', '/usr/sbin/nft'],
  ['conntrack', '/usr/sbin/conntrack'],
  ['iproute2', '/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip'],
  ['iptables', '/usr/sbin/iptables'],
  ['socat', '/usr/bin/socat'],
  ['ethtool', '/usr/sbin/ethtool', '/sbin/ethtool'],
  ['busybox-static', '/bin/busybox'],
  ['util-linux', '/usr/bin/nsenter'],
  ['procps', '/usr/sbin/sysctl', '/sbin/sysctl'],
];

/** Why this machine cannot run nodes, or undefined when it can. */
export function whyNoNodes(): string | undefined {
  if (process.platform !== 'linux')
    return `This machine runs ${process.platform}, and the local Kubernetes needs Linux.`;
  if (process.getuid?.() !== 0) return 'The local Kubernetes needs root (it makes network namespaces and mounts).';
  if (!existsSync('/sys/fs/cgroup/cgroup.controllers') && !existsSync('/sys/fs/cgroup/pids'))
    return 'The local Kubernetes needs cgroups, and /sys/fs/cgroup is not mounted here.';
  if (!existsSync('/dev/loop-control'))
    return 'The local Kubernetes needs loop devices for its volumes, and this machine has none.';
  const hidden = ['/run/', '/var/log/', '/var/run/'].find((folder) => root.startsWith(folder));
  if (hidden) return `A node has a ${hidden} of its own and would not see this checkout: move it to another folder.`;
  return undefined;
}

/** Fails with one sentence when nodes cannot run here. */
export async function requireNodesHost(): Promise<void> {
  const message = whyNoNodes();
  if (message) throw new Failure(message);
}

/** Installs the Debian packages that are missing. */
export async function installPackages(): Promise<void> {
  const packages = NEEDED.filter(([, ...files]) => !files.some((file) => existsSync(file))).map(([name]) => name);
  if (packages.length === 0) return;
  if (!existsSync('/usr/bin/apt-get'))
    throw new Failure(
      `The local Kubernetes needs ${packages.join(', ')}; install them with this system's package manager.`,
    );
  await step(`install ${packages.join(', ')}`, async (progress) => {
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    progress('refreshing the package lists');
    const patiently = ['-q', '-o', 'DPkg::Lock::Timeout=300', '-o', 'Acquire::Retries=3']; // on a new machine unattended upgrades may hold the lock
    await run('apt-get', ['update', ...patiently], { env });
    progress('installing');
    await run('apt-get', ['install', '-y', '--no-install-recommends', ...patiently, ...packages], { env });
  });
}
