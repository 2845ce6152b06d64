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
    'version cannot go from 3.5.31 to 3.6.16: etcd 3.6 may not start, or count removed members again. Set version to 3.5.35 first',
    formed,
  ],
  [
    'the next minor too early, again',
    { version: '3.6.10' },
    { version: '3.7.3' },
    'version cannot go from 3.6.10 to 3.7.3: earlier releases of 3.6 may not work together with 3.7. Set version to 3.6.16 first',
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
  ['the previous minor', { version: '3.6.16' }, { version: '3.5.35' }, undefined, formed],
  [
    'two minors back at once',
    { version: '3.7.3' },
    { version: '3.5.35' },
    'version cannot go back from 3.7.3 to 3.5.35: etcd is downgraded one minor at a time, and not below 3.5',
    formed,
  ],
  [
    'the previous minor that is too old',
    { version: '3.5.35' },
    { version: '3.4.40' },
    'version cannot go back from 3.5.35 to 3.4.40: etcd is downgraded one minor at a time, and not below 3.5',
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
    'back to the minor before what members run',
    { version: '3.7.3' },
    { version: '3.5.35' },
    undefined,
    { ...formed, version: '3.6.16' },
  ],
  [
    'back to two minors before what members run',
    { version: '3.6.16' },
    { version: '3.5.35' },
    'version cannot go back from 3.7.3 to 3.5.35',
    { ...formed, version: '3.7.3' },
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
