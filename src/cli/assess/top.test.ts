import { expect, test } from 'vitest';
import { table } from '../render/table.ts';
import { topColumns } from '../render/top.ts';
import { parseSample } from './metrics.ts';
import { topRow } from './top.ts';

const page = (puts: number, fast: number, slow: number): string => `# HELP x
etcd_server_is_leader 1
etcd_mvcc_put_total ${puts}
etcd_network_client_grpc_sent_bytes_total{a="b"} 100
etcd_network_client_grpc_sent_bytes_total{a="c"} 100
etcd_mvcc_db_total_size_in_bytes 2.097152e+06
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} ${fast}
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.016"} ${fast + slow}
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} ${fast + slow}
`;

test('rates and latencies are those between the two samples', () => {
  const row = topRow('a', parseSample(page(100, 1_000, 0), 1_000), parseSample(page(200, 1_000, 10), 3_000));
  expect(row).toMatchObject({ leader: true, puts: 50, sentBytes: 0, fsyncP99: 0.016, databaseBytes: 2_097_152 });
});

test('a member that has restarted in between has no rate, and one that does not respond has nothing', () => {
  expect(topRow('a', parseSample(page(100, 1, 0), 1_000), parseSample(page(7, 1, 0), 3_000)).puts).toBeUndefined();
  expect(topRow('a', undefined, undefined)).toEqual({ name: 'a' });
});

test('the whole table', async () => {
  const rows = [
    topRow('db-aaaa1', parseSample(page(100, 1_000, 0), 1_000), parseSample(page(325, 1_000, 10), 3_000)),
    topRow('db-aaaa2', undefined, undefined),
  ];
  const text = table({ colour: false, width: 100 }, topColumns(false), rows).join('\n');
  await expect(`${text}\n`).toMatchFileSnapshot('../render/golden/top.txt');
});
