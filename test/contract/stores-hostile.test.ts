/** A store that misbehaves: the agent ends with a reason instead of running out of memory or time. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { openStore } from '../../src/agent/stores/store.ts';
import { credentials, reader } from '../support/servers/stores.ts';
import { failure, keys } from './stores-world.ts';

let server: Server | undefined;
afterEach(() => server?.close());

const PAGE = 5_000;
const object = (n: number): string => `<Contents><Key>a-${String(n).padStart(12, '0')}</Key><Size>1</Size></Contents>`;

/** A listing without an end; `token` names the page after page `n`. */
async function endless(token: (n: number) => string) {
  let pages = 0;
  server = createServer((_request, response) => {
    const contents = Array.from({ length: PAGE }, (_, i) => object(pages * PAGE + i)).join('');
    pages += 1;
    response.setHeader('content-type', 'application/xml');
    response.end(
      `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${token(pages)}</NextContinuationToken>${contents}</ListBucketResult>`,
    );
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const place = {
    kind: 's3',
    endpoint: `http://127.0.0.1:${port}`,
    bucket: 'b',
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: 'secret',
    ca: false,
    checksums: 'whenRequired',
  } as const;
  const secrets = credentials({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' });
  return { store: await openStore(place, reader(secrets)), pages: () => pages };
}

test('a listing without an end is refused', async () => {
  const { store, pages } = await endless((n) => `page-${n}`);
  const { reason, message } = await failure(keys(store, 'a-'));
  expect(reason).toBe('Misconfigured');
  expect(message).toContain('does not end');
  expect(pages() * PAGE).toBeLessThan(300_000);
}, 120_000);

test('a listing that returns to the same page is refused', async () => {
  const { store, pages } = await endless(() => 'again');
  expect(await failure(keys(store, 'a-'))).toMatchObject({ reason: 'Misconfigured' });
  expect(pages()).toBe(2);
});
