/** What users do to certificates, Secrets and the root password; and an API server that cannot decrypt Secrets. */
import { QUARANTINE_LABEL } from '../../../src/api/names.ts';
import { persistentVolumeClaims } from '../../../src/kube/resources.ts';
import { CA_LIFETIME_MS } from '../../../src/pki/issue.ts';
import type { Deeds } from './stage.ts';

type Kinds =
  | 'rotateCA'
  | 'replaceCertificates'
  | 'changePassword'
  | 'deleteSecret'
  | 'unreadableSecrets'
  | 'killAtSecret'
  | 'expire';

export const credentialDeeds: Deeds<Kinds> = {
  rotateCA: ({ world }) => world.cluster !== undefined && world.credentials?.rotate() === true,
  replaceCertificates: ({ world }, { part, by }) => world.credentials?.replace(part, by) === true,
  changePassword: ({ world }) => world.credentials?.changePassword() === true,
  deleteSecret: ({ world: { credentials, ground } }, { n }) => {
    const name = credentials?.delete(n);
    if (name !== undefined) ground.tell(() => `*** Secret ${name} is deleted`);
    return name !== undefined;
  },
  killAtSecret: (stage, { nth, steps }) => {
    const { credentials } = stage.world;
    if (credentials) stage.killAtCall = { call: credentials.calls + nth, steps };
    return credentials !== undefined;
  },
  expire: ({ world, scene }) => {
    const { cluster, credentials, ground } = world;
    // Data in memory would be lost in the restart that alone helps. No cluster waits ten years for its bootstrap.
    if (
      cluster?.status?.clusterID === undefined ||
      !credentials ||
      cluster.spec.storage?.medium === 'Memory' ||
      credentials.hasExpired
    )
      return false;
    for (const operator of world.operators) operator.kill();
    ground.timeline.now += CA_LIFETIME_MS;
    credentials.replaceExpired();
    // The time of quarantined volumes is over as well.
    for (const { metadata } of ground.api.peek(persistentVolumeClaims))
      if (metadata.labels?.[QUARANTINE_LABEL] !== undefined) scene.deletedByPerson.add(metadata.uid ?? '');
    ground.soon(500, 60_000, () => void world.startOperator());
    return true;
  },
  unreadableSecrets: ({ world, scene }, { ms }) => {
    world.watches.unreadableUntil = world.ground.timeline.now + ms;
    scene.history.late(ms);
    return world.credentials !== undefined;
  },
};
