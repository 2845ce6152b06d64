/** Flags of users in the spelling of each minor, on real etcd: it lists its flags, and does not start with one that it does not know. */
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { build } from '../../local/binaries.ts';
import { spelledFor, unknownFlags } from '../../src/domain/etcd-flags.ts';
import { ETCD_PARTS, ETCD_VERSIONS, type EtcdVersion } from '../support/servers/etcd.ts';

const programs = new Map<EtcdVersion, string>();
const listed = new Map<EtcdVersion, ReadonlySet<string>>();

beforeAll(async () => {
  const binaries = await build(ETCD_VERSIONS.map((version) => ETCD_PARTS[version]));
  for (const version of ETCD_VERSIONS) {
    const program = join(binaries[ETCD_PARTS[version]], 'etcd');
    const help = execFileSync(program, ['--help'], { encoding: 'utf8' });
    programs.set(version, program);
    listed.set(version, new Set([...help.matchAll(/^\s*(--[a-z0-9-]+)/gm)].map(([, flag = '']) => flag)));
  }
});

const flagsOf = (version: EtcdVersion): readonly string[] => [...(listed.get(version) ?? [])];
/** 3.5 does not list all that it knows, such as --experimental-snapshot-catchup-entries. It refuses others before it does anything. */
const isKnown = (version: EtcdVersion, flag: string): boolean => {
  if (listed.get(version)?.has(flag)) return true;
  const { stderr } = spawnSync(programs.get(version) ?? '', [`${flag}=1`, '--version'], { encoding: 'utf8' });
  return !stderr.includes('flag provided but not defined');
};
const nameIn = (arg: string): string => arg.split('=')[0] ?? '';
/** Set by the operator, or by a field of options, which renders them for each minor. */
const ELSEWHERE =
  /^--(max-learners|discovery|proxy|enable-v2|experimental-(enable-v2v3|peer-)|peer-|corrupt-check-time)/;
const OPTIONS = /^--experimental-(initial-corrupt-check|compact-hash-check-enabled|corrupt-check-time)$/;

test.each(ETCD_VERSIONS.flatMap((from) => ETCD_VERSIONS.filter((to) => to !== from).map((to) => [from, to] as const)))(
  'every flag of etcd %s is known to %s in its spelling, or reported as unknown',
  (from, to) => {
    const args = flagsOf(from).filter((flag) => !ELSEWHERE.test(flag) && !OPTIONS.test(flag));
    expect(args.length).toBeGreaterThan(50);
    const reported = unknownFlags(to, args);
    const passed = spelledFor(to, args)
      .map(nameIn)
      .filter((flag) => !reported.includes(flag));
    expect(passed.filter((flag) => !isKnown(to, flag))).toEqual([]);
  },
);

test('etcd refuses a flag that it does not know', () => {
  expect(ETCD_VERSIONS.map((version) => isKnown(version, '--no-such-flag'))).toEqual([false, false, false]);
});
