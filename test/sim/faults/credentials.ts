/** What users do to certificates, Secrets and the root password; and an API server that cannot decrypt Secrets. */
import type { Deeds } from './stage.ts';

type Kinds =
  | 'rotateCA'
  | 'replaceCertificates'
  | 'changePassword'
  | 'deleteSecret'
  | 'unreadableSecrets'
  | 'killAtSecret';

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
  unreadableSecrets: ({ world, scene }, { ms }) => {
    world.watches.unreadableUntil = world.ground.timeline.now + ms;
    scene.history.late(ms);
    return world.credentials !== undefined;
  },
};
