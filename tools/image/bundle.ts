/** One file from the sources of a program and its dependencies, and the licences of what is in it. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { root } from '../paths.ts';
import { Failure, say } from '../terminal.ts';

export interface Bundle {
  /** The name of the file, such as `manager.mjs`; its source map has the same name plus `.map`. */
  readonly name: string;
  readonly code: Buffer;
  readonly map: Buffer;
  /** The packages whose code it contains, such as `node_modules/@scope/name`. */
  readonly packages: readonly string[];
  /** The licence comments that were in the sources. */
  readonly comments: string;
}

export interface BundleOptions {
  /** In the first line. */
  readonly interpreter?: string;
  /** Names in the sources that are replaced by these expressions. */
  readonly define?: Readonly<Record<string, string>>;
}

/**
 * The kernel starts the file by its first line, so that `/manager` works like the program of that name that it replaces.
 * The dependencies that are still CommonJS call `require`, which a module does not have.
 */
const banner = (interpreter: string): string => `#!${interpreter}
import { createRequire as createRequireForBundle } from 'node:module';
const require = createRequireForBundle(import.meta.url);`;

const FIRST_LINE_ONLY = Buffer.from('{"version":3,"sources":[""],"mappings":"AAAA"}').toString('base64');

/** Maps only the first line of a dependency: with all of them, the first stack trace costs the process 40 MiB. */
const mapOwnSourcesOnly: Plugin = {
  name: 'map-own-sources-only',
  setup(context) {
    context.onLoad({ filter: /\/node_modules\/.*\.[cm]?js$/ }, async ({ path }) => ({
      contents: `${await readFile(path, 'utf8')}\n//# sourceMappingURL=data:application/json;base64,${FIRST_LINE_ONLY}`,
    }));
  },
};

function packagesOf(inputs: readonly string[]): string[] {
  const found = inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]);
  return [...new Set(found.filter((path) => path !== undefined))].toSorted();
}

/** The licences of what is in the bundles, each once. */
export async function licensesOf(bundles: readonly Bundle[]): Promise<Buffer> {
  const packages = new Set(bundles.flatMap((each) => each.packages));
  const comments = new Set(bundles.map((each) => each.comments));
  return Buffer.from([...(await licenseTexts([...packages].toSorted())), ...comments].join('\n\n'));
}

async function licenseTexts(packages: readonly string[]): Promise<string[]> {
  const texts: string[] = [];
  for (const folder of packages) {
    const names = await readdir(join(root, folder));
    const { version } = JSON.parse(await readFile(join(root, folder, 'package.json'), 'utf8')) as { version: string };
    for (const name of names.filter((file) => /^(licen[cs]e|notice)/i.test(file)).toSorted())
      texts.push(
        `==== ${folder.replace(/^.*node_modules\//, '')} ${version}: ${name}\n\n${await readFile(join(root, folder, name), 'utf8')}`,
      );
  }
  return texts;
}

/**
 * Without comments: one letter beyond Latin-1 in them would double the memory of the whole text, 5 MiB in all. With all names,
 * and a map without sources: a stack trace names the line of the source, and the image stays small.
 */
export async function bundle(
  entry: string,
  name = 'manager.mjs',
  { interpreter = '/usr/local/bin/node', define = {} }: BundleOptions = {},
): Promise<Bundle> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: join(root, name),
    bundle: true,
    minifyWhitespace: true,
    write: false,
    metafile: true,
    platform: 'node',
    target: 'node26',
    format: 'esm',
    banner: { js: banner(interpreter) },
    define: { ...define },
    plugins: [mapOwnSourcesOnly],
    sourcemap: 'linked',
    sourcesContent: false,
    legalComments: 'external',
    logLevel: 'silent',
  }).catch((error: unknown) => {
    throw new Failure(`${entry} cannot be bundled. ${error instanceof Error ? error.message : String(error)}`);
  });
  for (const { text, location } of result.warnings) say(`  ! ${location?.file ?? entry}: ${text}`);
  const output = (suffix: string): Buffer =>
    Buffer.from(result.outputFiles.find((file) => file.path.endsWith(suffix))?.contents ?? []);
  return {
    name,
    code: output(name),
    map: output(`${name}.map`),
    packages: packagesOf(Object.keys(result.metafile.inputs)),
    comments: output('.LEGAL.txt').toString(),
  };
}
