/** What users read about a CA rotation: the same sentence in Progressing and in CertificatesValid. */

import { describe, expect, test } from 'vitest';
import { down, name, up } from '../../../../test/support/builders/members.ts';
import {
  BOTH,
  bundle,
  memory,
  NEW,
  narrowing,
  OLD,
  rotating,
  started,
  terminating,
  widening,
} from '../../../../test/support/builders/rotating.ts';
import { findCondition } from '../../../domain/conditions.ts';
import { decide } from '../decide.ts';
import type { Gathered } from '../observed.ts';

const conditionOf = (o: Gathered, type: string) => {
  const found = findCondition(decide(o).status.conditions, type);
  return found && `${found.status} ${found.reason}: ${found.message}`;
};

describe('the conditions', () => {
  const both = (o: Gathered) => {
    expect(conditionOf(o, 'Progressing')).toBe(conditionOf(o, 'CertificatesValid'));
    return conditionOf(o, 'Progressing');
  };
  const need = { role: 'peer', from: 'user', secret: 'mine', mount: 'db-peer-mounted' } as const;
  const certificates = [{ need, findings: [], usable: true, notAfter: 1 }];

  test.each<[string, Gathered, string]>([
    [
      'report how many members trust both CAs',
      rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates } }),
      'step 1 of 3 on the peer port: members must trust the old and the new CA, 1 of 3 do',
    ],
    [
      'report the member whose data would be lost',
      rotating([started(OLD, memory())], widening, { view: { certificates } }),
      `0 of 1 do; the next member is not restarted yet: ${name(1)} has its data in memory only, which is lost when it restarts: set replicas to 3, so that other members have it`,
    ],
    [
      'report until when clients get the new CA',
      rotating(
        [started(BOTH)],
        { ...widening, reachedAt: Date.parse('2027-01-01T00:00:00Z') },
        { view: { certificates } },
      ),
      'step 2 of 3 on the peer port: certificates are reissued; not before 2027-01-01T00:00:00Z, so that the Secrets have been updated in all Pods that mount them',
    ],
    [
      'report the missing certificate',
      rotating([started(BOTH)], { ...widening, notReissued: ['mine'] }, { view: { certificates } }),
      'step 2 of 3 on the peer port: certificates are reissued; a certificate of the new CA is missing in Secret mine',
    ],
    [
      'report that not all members serve theirs',
      rotating([started(BOTH)], { ...widening, notReissued: [] }, { view: { certificates } }),
      'not all members serve theirs yet',
    ],
    [
      'report how many members trust the new CA only',
      rotating([started(BOTH), started(NEW)], narrowing, { view: { certificates } }),
      'step 3 of 3 on the peer port: members must trust the new CA only, 1 of 2 do',
    ],
    [
      'report that the Pod of the last member is not created again',
      rotating([started(NEW), started(NEW, { ...down, pod: { is: 'absent' } })], narrowing, {
        view: { certificates, kept: [bundle('peer', BOTH)] },
      }),
      'step 3 of 3 on the peer port: members must trust the new CA only, 1 of 2 do',
    ],
  ])('%s', (_, o, sentence) => {
    expect(both(o)).toMatch(/^True RotatingCA: CA rotation in progress: /);
    expect(both(o)).toContain(sentence);
  });

  test('report why the next member waits', () => {
    const o = terminating(
      rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates } }),
      2,
    );
    expect(conditionOf(o, 'CertificatesValid')).toContain(`${name(3)} must be ready and healthy first`);
  });

  test('report that the Secrets of the next member are missing', () => {
    const findings = [{ is: 'caBundleLost', secret: 'x' } as const];
    const bundles = [{ secret: bundle('peer', BOTH), part: 'peer', findings } as const];
    const o = rotating([started(OLD), started(OLD), started(BOTH)], widening, { view: { certificates, bundles } });
    expect(conditionOf(o, 'CertificatesValid')).toContain(
      'the next member is not restarted yet: its Pod could not be recreated: certificates are missing or invalid',
    );
  });

  test('report nothing without a rotation', () => {
    const o = rotating([up, up, up], {}, { view: { certificates } });
    expect(conditionOf(o, 'Progressing')).toBe('False Reconciled: All members match the spec');
    expect(conditionOf(o, 'CertificatesValid')).toContain('True Valid');
  });

  test('report nothing when a Pod is lost later', () => {
    const o = rotating([up, { ...down, pod: { is: 'absent' } }], {}, { view: { certificates } });
    expect(conditionOf(o, 'CertificatesValid')).toContain('True Valid');
  });
});
