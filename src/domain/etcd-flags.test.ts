/** Flags of users in the spelling of each minor. */
import { expect, test } from 'vitest';
import { spelledFor, unknownFlags } from './etcd-flags.ts';

test.each<[string, string, string]>([
  ['3.5.35', '--experimental-compaction-batch-limit=100', '--experimental-compaction-batch-limit=100'],
  ['3.6.16', '--experimental-compaction-batch-limit=100', '--experimental-compaction-batch-limit=100'],
  ['3.7.3', '--experimental-compaction-batch-limit=100', '--compaction-batch-limit=100'],
  ['3.7.3', '--experimental-memory-mlock', '--memory-mlock'],
  ['3.7.3', '--experimental-stop-grpc-service-on-defrag', '--feature-gates=StopGRPCServiceOnDefrag=true'],
  ['3.7.3', '--experimental-enable-lease-checkpoint=false', '--feature-gates=LeaseCheckpoint=false'],
  ['3.7.3', '--experimental-warning-unary-request-duration=1s', '--warning-unary-request-duration=1s'],
  ['3.6.16', '--compaction-batch-limit=100', '--compaction-batch-limit=100'],
  ['3.5.35', '--compaction-batch-limit=100', '--experimental-compaction-batch-limit=100'],
  ['3.7.3', '--pre-vote=a=b', '--pre-vote=a=b'],
])('etcd %s gets %s as %s', (version, arg, expected) => {
  expect(spelledFor(version, [arg])).toEqual([expected]);
});

test.each<[string, string, readonly string[]]>([
  ['3.7.3', '--experimental-foo=1', ['--experimental-foo']],
  ['3.6.16', '--experimental-foo=1', []],
  ['3.7.3', '--experimental-compaction-batch-limit=100', []],
  ['3.5.35', '--feature-gates=LeaseCheckpoint=true', ['--feature-gates']],
  ['3.5.35', '--log-format=json', ['--log-format']],
  ['3.6.16', '--feature-gates=LeaseCheckpoint=true,PriorityRequest=true', ['--feature-gates=PriorityRequest']],
  ['3.7.3', '--feature-gates=PriorityRequest=true', []],
  ['3.7.3', '--pre-vote', []],
])('etcd %s with %s does not know: %s', (version, arg, unknown) => {
  expect(unknownFlags(version, [arg])).toEqual(unknown);
});
