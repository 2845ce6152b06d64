import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { run } from '../process.ts';
import { krewManifest, npmPackage, packForKrew } from './packages.ts';

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'plugin-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('the archive for krew has the program under the name that kubectl looks for, and the licence', async () => {
  const folder = aFolder();
  writeFileSync(join(folder, 'program'), 'the program');
  const archive = await packForKrew(join(folder, 'program'), 'linux-amd64', folder);
  expect(archive).toBe(join(folder, 'kubectl-etcd-linux-amd64.tar.gz'));
  expect((await run('tar', ['-tzvf', archive])).stdout).toMatch(
    /^-rwxr-xr-x .* kubectl-etcd\n-rw-r--r-- .* LICENSE\n$/,
  );
  expect((await run('tar', ['-xzOf', archive, 'kubectl-etcd'])).stdout).toBe('the program');
});

test('the manifest for krew has an archive for each platform', () => {
  const packed = [{ platform: 'darwin-arm64', sha256: 'abc' }] as const;
  const manifest = parse(krewManifest('1.2.3', 'https://example.com/v1/', packed)) as {
    readonly spec: { readonly version: string; readonly platforms: readonly object[] };
  };
  expect(manifest.spec.version).toBe('v1.2.3');
  expect(manifest.spec.platforms).toEqual([
    {
      selector: { matchLabels: { os: 'darwin', arch: 'arm64' } },
      uri: 'https://example.com/v1/kubectl-etcd-darwin-arm64.tar.gz',
      sha256: 'abc',
      bin: 'kubectl-etcd',
    },
  ]);
});

test('the package for npm installs the program', async () => {
  const folder = aFolder();
  writeFileSync(join(folder, 'kubectl-etcd'), '#!/usr/bin/env node\n');
  const path = await npmPackage(join(folder, 'kubectl-etcd'), '1.2.3', folder);
  const { bin, version } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as {
    readonly bin: Readonly<Record<string, string>>;
    readonly version: string;
  };
  expect([version, Object.keys(bin)]).toEqual(['1.2.3', ['kubectl-etcd']]);
  expect(readFileSync(join(path, bin['kubectl-etcd'] ?? ''), 'utf8')).toBe('#!/usr/bin/env node\n');
});
