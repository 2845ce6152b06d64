/** Edits of the version. The status has the version that members run. */
import type { EditRow } from './row.ts';

const formed = { clusterID: 'cafe000000000001' };

export const edits: readonly EditRow[] = [
  ['a later patch', { version: '3.6.11' }, { version: '3.6.16' }, undefined, formed],
  ['an earlier patch', { version: '3.6.16' }, { version: '3.6.11' }, undefined, formed],
  ['the next minor', { version: '3.6.16' }, { version: '3.7.3' }, undefined, formed],
  ['the next minor from the first patch that can', { version: '3.5.32' }, { version: '3.6.16' }, undefined, formed],
  [
    'the next minor too early',
    { version: '3.5.31' },
    { version: '3.6.16' },
    'version cannot go from 3.5.31 to 3.6.16: members could be lost during the upgrade. Upgrade to at least 3.5.32 first',
    formed,
  ],
  [
    'the next minor too early, again',
    { version: '3.6.10' },
    { version: '3.7.3' },
    'members could be lost during the upgrade. Upgrade to at least 3.6.11 first',
    formed,
  ],
  [
    'two minors at once',
    { version: '3.5.35' },
    { version: '3.7.3' },
    'version cannot jump from 3.5.35 to 3.7.3: etcd goes up one minor at a time',
    formed,
  ],
  ['another major', { version: '3.7.3' }, { version: '4.0.0' }, 'version cannot jump from 3.7.3 to 4.0.0', formed],
  [
    'an earlier minor',
    { version: '3.6.16' },
    { version: '3.5.35' },
    'version cannot go back from 3.6.16 to 3.5.35',
    formed,
  ],
  [
    'an edit of the version that reached no member is taken back',
    { version: '3.6.16' },
    { version: '3.5.35' },
    undefined,
    { ...formed, version: '3.5.35' },
  ],
  [
    'back to before what members run',
    { version: '3.7.3' },
    { version: '3.5.35' },
    'version cannot go back from 3.6.16 to 3.5.35',
    { ...formed, version: '3.6.16' },
  ],
  [
    'a jump from what members run',
    { version: '3.6.16' },
    { version: '3.7.3' },
    'version cannot jump from 3.5.35 to 3.7.3',
    { ...formed, version: '3.5.35' },
  ],

  ['a mistyped version is corrected before anything exists', { version: '3.9.16' }, { version: '3.6.16' }],
  ['a mistyped version is corrected upwards', { version: '3.3.16' }, { version: '3.6.16' }, undefined, { members: [] }],
];
