/** Splits a stream into JSON documents, one per line, without blocking the event loop. */
import { setImmediate as turn } from 'node:timers/promises';

/** After this much parsing the event loop runs other tasks: thousands of objects may be buffered already. */
const SLICE_MS = 5;

/** An incomplete document after the last line break is dropped. */
export async function* jsonLines<T>(body: AsyncIterable<Uint8Array>): AsyncGenerator<T> {
  const decoder = new TextDecoder();
  let rest: string[] = [];
  let slice = performance.now();
  for await (const bytes of body) {
    const chunk = decoder.decode(bytes, { stream: true });
    let from = 0;
    for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', from)) {
      const line = rest.length === 0 ? chunk.slice(from, at) : rest.join('') + chunk.slice(from, at);
      rest = [];
      from = at + 1;
      if (line !== '') yield JSON.parse(line) as T;
      if (performance.now() - slice > SLICE_MS) {
        await turn();
        slice = performance.now();
      }
    }
    if (from < chunk.length) rest.push(chunk.slice(from));
  }
}
