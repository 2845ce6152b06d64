/** CA rotations of members on volumes, by a user and by the operator; the one of cert-manager is beside its other journeys. */
import { describe, test } from 'vitest';
import { ROTATE_CA_ANNOTATION } from '../../src/api/names.ts';
import { aTenant, KIND } from '../support/journeys/journey.ts';
import { isIssuedBy, PATIENCE_MS, survives } from '../support/journeys/rotation-journey.ts';
import { clientOf, managed, nudge, ownSecrets, secretText } from '../support/journeys/tls.ts';

describe('a CA rotation of running members', { timeout: 2 * PATIENCE_MS }, () => {
  test.runIf(process.env['DEV_TEST_ALL'])('by Secrets of the user that change at once', async () => {
    const tenant = await aTenant();
    const [old, fresh] = [await ownSecrets(tenant, 'own'), await ownSecrets(tenant, 'own')];
    const [before, after] = [await old.client(), await fresh.client()];
    await survives(tenant, 'own', {
      source: old,
      client: async () => {
        const mounted = await secretText(tenant, 'own-server-mounted');
        const own = isIssuedBy(after.ca, mounted['tls.crt'] ?? '') ? after : before;
        return { ...own, ca: `${before.ca}${after.ca}` };
      },
      exchange: async () => {
        await fresh.give();
        await nudge(tenant, 'own');
      },
    });
  });

  test("the operator's own, by command", async () => {
    const tenant = await aTenant();
    await survives(tenant, 'one-line', {
      source: managed(tenant, 'one-line'),
      client: () => clientOf(tenant, 'one-line'),
      exchange: async () => {
        await tenant.kubectl('annotate', KIND, 'one-line', `${ROTATE_CA_ANNOTATION}=now`);
      },
    });
  });
});
