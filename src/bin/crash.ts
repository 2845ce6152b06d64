/**
 * The stack trace of a crash names lines of the source. Node's own `--enable-source-maps` parses the map of the whole bundle when
 * the process starts: 15 MiB for as long as it runs. Here the map is read only when it is needed.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

/** `undefined` when there is no map next to the file. */
function mapOf(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
  } catch {
    return undefined;
  }
}

const PLACE = /(file:\/\/\/[^\s()]+?\.mjs):(\d+):(\d+)/g;

function withSourceLines(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replace(PLACE, (place, url: string, line: string, column: string) => {
    if (!maps.has(url)) maps.set(url, mapOf(fileURLToPath(url)));
    const found = maps.get(url)?.findEntry(Number(line) - 1, Number(column) - 1);
    return found && 'originalSource' in found
      ? `${found.originalSource}:${found.originalLine + 1}:${found.originalColumn + 1}`
      : place;
  });
}

/** From now on, an error that nothing catches ends the process with such a stack trace. */
export function reportCrashes(): void {
  process.on('uncaughtException', (error) => {
    process.stderr.write(`${withSourceLines(inspect(error))}\n`);
    process.exit(1);
  });
}
