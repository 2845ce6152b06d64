import { expect, test } from 'vitest';
import { isZone, zoneOf } from './zone.ts';

/** The same zone, written in as many ways as wanted. */
const spelt = (name: string, way: number): string =>
  name.replace(/./g, (letter, i: number) => ((way >> i) & 1 ? letter.toUpperCase() : letter));

test('zones are kept, but not one for each way to write them', () => {
  const kept = zoneOf('Europe/Berlin');
  expect(zoneOf('Europe/Berlin')).toBe(kept);
  for (let way = 0; way < 501; way++) expect(isZone(spelt('australia/sydney', way))).toBe(true);
  expect(zoneOf('Europe/Berlin')).not.toBe(kept);
  expect(zoneOf('Europe/Berlin').offsetAt(Date.UTC(2026, 6, 1))).toBe(2 * 3_600_000);
});
