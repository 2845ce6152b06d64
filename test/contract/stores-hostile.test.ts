/** A store that misbehaves: the agent ends with a reason instead of running out of memory or time. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { openStore, type Store } from '../../src/agent/stores/store.ts';
import { credentials, reader } from '../support/servers/stores.ts';
import { failure, keys, put, text } from './stores-world.ts';

let server: Server | undefined;
afterEach(() => server?.close());

const PAGE = 5_000;
const object = (n: number): string => `<Contents><Key>a-${String(n).padStart(12, '0')}</Key><Size>1</Size></Contents>`;

/** The place of a server that responds so. */
async function serving(listener: RequestListener): Promise<Store> {
  const started = createServer(listener);
  server = started;
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
  const place = {
    kind: 's3',
    endpoint: `http://127.0.0.1:${(started.address() as AddressInfo).port}`,
    bucket: 'b',
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: 'secret',
    ca: false,
    checksums: 'whenRequired',
  } as const;
  return openStore(place, reader(credentials({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' })));
}

/** A listing without an end; `token` names the page after page `n`. */
async function endless(token: (n: number) => string) {
  let pages = 0;
  const store = await serving((_request, response) => {
    const contents = Array.from({ length: PAGE }, (_, i) => object(pages * PAGE + i)).join('');
    pages += 1;
    response.setHeader('content-type', 'application/xml');
    response.end(
      `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>${token(pages)}</NextContinuationToken>${contents}</ListBucketResult>`,
    );
  });
  return { store, pages: () => pages };
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

/** Alibaba OSS responds like this, with 400 instead of 501. */
test('a service without conditional writes and without listing uploads stores a snapshot all the same', async () => {
  const refused = '<Error><Code>NotImplemented</Code><Message>A header is not implemented</Message></Error>';
  const seen: string[] = [];
  let stored: { readonly size: number; readonly metadata: Record<string, string> } | undefined;
  const store = await serving((request, response) => {
    const { method = '', url = '', headers } = request;
    const condition = headers['if-none-match'] !== undefined || headers['if-match'] !== undefined;
    seen.push(`${method}${condition ? ' on a condition' : ''}${headers['content-encoding'] ?? ''}`);
    request.resume().on('end', () => {
      if (condition || url.includes('uploads')) return void response.writeHead(400).end(refused);
      if (method === 'HEAD' && /^\/b\/?$/.test(url)) return void response.end();
      if (method === 'HEAD' && !stored) return void response.writeHead(404).end();
      if (method === 'HEAD')
        return void response
          .writeHead(200, { ...stored?.metadata, 'content-length': stored?.size ?? 0, etag: '"x"' })
          .end();
      const metadata = Object.entries(headers).filter(([name]) => name.startsWith('x-amz-meta-'));
      stored = {
        size: Number(headers['content-length']),
        metadata: Object.fromEntries(metadata) as Record<string, string>,
      };
      response.writeHead(200, { etag: '"x"' }).end();
    });
  });
  await put(store, 'a.db', text('hello'));
  expect(await store.head('a.db')).toMatchObject({ size: 5, uid: 'uid-1' });
  expect(seen.filter((each) => each.startsWith('PUT'))).toEqual(['PUT on a condition', 'PUT']);
});
