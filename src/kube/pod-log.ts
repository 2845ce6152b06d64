/** The log of a container, line by line. */
import { pathOf, type Ref } from './object.ts';
import { pods } from './resources.ts';
import type { Transport } from './transport.ts';

export interface LogOptions {
  readonly container?: string;
  /** Only this number of the last existing lines. */
  readonly tailLines?: number;
  readonly sinceSeconds?: number;
  /** Of the previous container. */
  readonly previous?: boolean;
  /** Follows until the container ends or the signal. */
  readonly follow?: boolean;
  readonly timestamps?: boolean;
  readonly signal: AbortSignal;
}

export async function* podLog(transport: Transport, ref: Ref, options: LogOptions): AsyncGenerator<string> {
  const { signal, container, tailLines, sinceSeconds } = options;
  const query = {
    ...(container !== undefined && { container }),
    ...(tailLines !== undefined && { tailLines: String(tailLines) }),
    ...(sinceSeconds !== undefined && { sinceSeconds: String(sinceSeconds) }),
    ...(options.previous && { previous: 'true' }),
    ...(options.follow && { follow: 'true' }),
    ...(options.timestamps && { timestamps: 'true' }),
  };
  const body = await transport.stream(`${pathOf(pods, ref.namespace, ref.name)}/log`, { query, signal });
  body.setEncoding('utf8');
  let rest = '';
  for await (const chunk of body as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest; // a program may exit without a final line break
}
