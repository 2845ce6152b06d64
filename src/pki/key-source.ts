/** Keys, serial numbers and signatures from the system's random source. */
import { generateKeyPair, randomBytes, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { KeySource } from './issue.ts';

export const systemKeySource: KeySource = {
  key: async () => (await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })).privateKey,
  serial: () => randomBytes(16),
  sign: (content, by) => sign('sha256', content, by),
};
