/** `./dev image`: the operator's image as a file, and the commands that bring it to a registry or a node. */
import { copyFile, rename } from 'node:fs/promises';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheDir } from '../paths.ts';
import { say, UsageFailure } from '../terminal.ts';
import { updateLock } from './debian.ts';
import type { Architecture } from './elf.ts';
import { buildOperatorImage, type OperatorImage, oneAtATime } from './operator.ts';

export const USAGE = `./dev image [--arch amd64|arm64|all] [--locked] [--out FILE] [--update-lock]

Builds the operator's image archive without Docker. The same commit and the Debian packages of
tools/image/debian.lock.json give the same digest on every machine; where apt-get's sources do not have those packages any more,
others are taken and the build says so.

  --arch         the image's architecture; without it, that of this machine
  --locked       fail when a Debian package of tools/image/debian.lock.json cannot be had any more, instead of taking another
  --out          where to put the archive; without it, under .cache/images
  --update-lock  first write the Debian packages of today into tools/image/debian.lock.json
`;

const HOST: Readonly<Record<string, Architecture>> = { x64: 'amd64', arm64: 'arm64' };

function architectures(wanted: string | undefined): readonly Architecture[] {
  if (wanted === 'all') return ['amd64', 'arm64'];
  if (wanted === 'amd64' || wanted === 'arm64') return [wanted];
  const own = HOST[process.arch];
  if (wanted === undefined && own) return [own];
  throw new UsageFailure(`No image can be built for "${wanted ?? process.arch}": use --arch amd64, arm64 or all.`);
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        arch: { type: 'string' },
        locked: { type: 'boolean', default: false },
        out: { type: 'string' },
        'update-lock': { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    }).values;
  } catch (error) {
    throw new UsageFailure(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
  }
}

/** Copies under another name first and renames: a program that watches for the file never reads half of it. */
async function place(image: OperatorImage, out: string | undefined): Promise<OperatorImage> {
  if (out === undefined) return image;
  const path = resolve(out);
  await copyFile(image.path, `${path}.tmp`);
  await rename(`${path}.tmp`, path);
  return { ...image, path };
}

const afterwards = `
  and then:       helm install etcd-operator charts/etcd-operator -n etcd-operator-system --create-namespace \\
                    --set image.repository=REGISTRY/etcd-operator
`;

/** The commands that bring the images to a registry, or one to a node; several are combined under one tag. */
export function explain(images: readonly OperatorImage[]): string {
  const { reference = '' } = images[0] ?? {};
  const tag = `REGISTRY/${reference.slice(reference.lastIndexOf('/') + 1)}`;
  const node = images.map(({ path }) => `ctr -n k8s.io images import ${path}`);
  const lines = (what: string, commands: readonly string[]): string =>
    commands.map((command, i) => `  ${(i === 0 ? what : '').padEnd(14)}  ${command}`).join('\n');
  if (images.length === 1) {
    const [path = ''] = images.map((image) => image.path);
    const push = [`skopeo copy --preserve-digests oci-archive:${path} docker://${tag}`, `crane push ${path} ${tag}`];
    return `\n${lines('to a registry:', push)}\n${lines('to one node:', node)}${afterwards}`;
  }
  const tags = images.map(({ architecture }) => `${tag}-${architecture}`);
  const push = images.map(({ path }, i) => `crane push ${path} ${tags[i]}`);
  const index = `crane index append ${tags.map((each) => `-m ${each}`).join(' ')} -t ${tag}`;
  return `\n${lines('to a registry:', [...push, index])}\n${lines('to one node:', node)}${afterwards}`;
}

export async function imageCommand(args: readonly string[]): Promise<number> {
  const options = parse(args);
  if (options.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const wanted = architectures(options.arch);
  if (options.out !== undefined && wanted.length > 1)
    throw new UsageFailure('--out takes one archive: use --arch amd64 or --arch arm64 with it.');
  if (options['update-lock']) await oneAtATime(() => updateLock(cacheDir));
  const images: OperatorImage[] = [];
  for (const architecture of wanted) {
    const image = await place(await buildOperatorImage({ architecture, locked: options.locked }), options.out);
    process.stdout.write(`${image.path}\n${image.reference}@${image.digest}\n`);
    images.push(image);
  }
  say(explain(images));
  return 0;
}
