/** Rules over several fields of an EtcdCluster. */
import { type CelRule, unlessUnchanged } from './cel.ts';
import { MAX_CLUSTER_NAME } from './names.ts';

/** A subtree that is immutable after creation: neither added, nor removed, nor changed. */
const fixed = (field: string, hint: string): readonly CelRule[] => [
  {
    rule: `has(self.${field}) == has(oldSelf.${field})`,
    message: `${field} cannot be added or removed after creation: ${hint}`,
    fieldPath: `.${field}`,
  },
  {
    rule: `!has(self.${field}) || !has(oldSelf.${field}) || self.${field} == oldSelf.${field}`,
    message: `${field} cannot change after creation: ${hint}`,
    fieldPath: `.${field}`,
  },
];

const authOn = 'has(self.auth) && has(self.auth.enabled) && self.auth.enabled';
const inMemory = "self.storage.medium == 'Memory'";

export const specRules: readonly CelRule[] = [
  {
    rule: `!(self.replicas == 0 && ${inMemory})`,
    message:
      'replicas 0 would lose all data of a cluster with storage.medium Memory: keep at least 1, or delete the cluster',
    fieldPath: '.replicas',
  },
  ...fixed('tls', 'create a new cluster and move the data with a snapshot'),
  ...fixed('auth', 'create a new cluster and move the data with a snapshot'),
  ...fixed('bootstrap', 'it is used only once, when the cluster is bootstrapped'),
  {
    rule: `!(${authOn}) || (has(self.tls) && has(self.tls.client))`,
    message: 'auth.enabled needs tls.client: passwords must not be sent in plaintext',
    fieldPath: '.auth',
  },
  {
    rule: `!(${authOn}) || has(self.auth.rootCredentialsSecretRef)`,
    message: 'auth.enabled needs auth.rootCredentialsSecretRef: a Secret with the password of root',
    fieldPath: '.auth',
  },
  {
    rule: `!(has(self.bootstrap) && has(self.bootstrap.restore) && ${inMemory})`,
    message: 'bootstrap.restore cannot be used with storage.medium Memory: use a persistent volume',
    fieldPath: '.bootstrap',
  },
  unlessUnchanged(['spread', 'affinity'], {
    rule: "!has(self.spread) || self.spread != 'Required' || !has(self.affinity) || !has(self.affinity.podAntiAffinity)",
    message: 'spread Required and affinity.podAntiAffinity contradict each other: remove one of them',
    fieldPath: '.spread',
  }),
  {
    rule: '!has(self.image) || !has(self.image.digest) || !has(oldSelf.image) || !has(oldSelf.image.digest) || self.version == oldSelf.version || self.image.digest != oldSelf.image.digest',
    message: 'image.digest pins the image of the old version: change it together with version, or remove it',
    fieldPath: '.image',
  },
];

const part = (version: string, i: number): string => `int(${version}.split('.')[${i}])`;
const [old, now] = ['oldSelf.spec.version', 'self.spec.version'];
/** The version that members run, where it is known: an edit that has not reached any member can be reverted. */
const runs = `(has(self.status) && has(self.status.version) && self.status.version.matches('^[0-9]+[.][0-9]+[.][0-9]+$') ? self.status.version : ${old})`;
/** Per minor, the first patch release that can be upgraded to the next minor. */
const floors = '{3005: 32, 3006: 11}';
const minorOf = (version: string): string => `(${part(version, 0)} * 1000 + ${part(version, 1)})`;
const shape = "'^[0-9]{1,3}[.][0-9]{1,3}[.][0-9]{1,6}$'";
/** Before the cluster is bootstrapped there is no data that a version could fail to read: a mistyped version can be corrected. */
const judged = `has(self.status) && has(self.status.clusterID) && ${old}.matches(${shape}) && ${now}.matches(${shape})`;

/** Rules that need the name, or the status. */
export const clusterRules: readonly CelRule[] = [
  {
    // Objects that were accepted without this rule stay editable.
    rule: `oldSelf.hasValue() || (size(self.metadata.name) <= ${MAX_CLUSTER_NAME} && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))`,
    optionalOldSelf: true,
    message: `the name must start with a letter, hold only a-z, 0-9 and -, and have at most ${MAX_CLUSTER_NAME} characters: Services and members are named after it`,
    messageExpression: `'the name ' + self.metadata.name + ' must start with a letter, hold only a-z, 0-9 and -, and have at most ${MAX_CLUSTER_NAME} characters: Services and members are named after it'`,
  },
  {
    // One minor down is what etcd can do; whether it can do so now is a condition of the cluster.
    rule: `${now} == ${old} || !(${judged}) || ${minorOf(now)} >= ${minorOf(runs)} || (${minorOf(now)} == ${minorOf(runs)} - 1 && ${minorOf(now)} >= 3005)`,
    message:
      'version can only go back by one minor at a time, and not below 3.5: restore a snapshot into a new cluster instead',
    messageExpression: `'version cannot go back from ' + ${runs} + ' to ' + ${now} + ': etcd is downgraded one minor at a time, and not below 3.5. Go back to the previous minor first, or restore a snapshot into a new cluster'`,
    fieldPath: '.spec.version',
  },
  {
    rule: `${now} == ${old} || !(${judged}) || ${minorOf(now)} <= ${minorOf(runs)} + 1`,
    message: 'version can only go up by one minor at a time',
    messageExpression: `'version cannot jump from ' + ${runs} + ' to ' + ${now} + ': etcd goes up one minor at a time. Upgrade to the newest patch of the next minor first'`,
    fieldPath: '.spec.version',
  },
  {
    rule: `${now} == ${old} || !(${judged}) || ${minorOf(now)} != ${minorOf(runs)} + 1 || !(${minorOf(runs)} in ${floors}) || ${part(runs, 2)} >= ${floors}[${minorOf(runs)}]`,
    message: 'version can only go to the next minor from a recent patch: upgrade to at least 3.5.32 or 3.6.11 first',
    messageExpression: `'version cannot go from ' + ${runs} + ' to ' + ${now} + ': ' + (${minorOf(runs)} == 3005 ? 'etcd 3.6 may not start, or count removed members again. Set version to 3.5.35' : 'earlier releases of 3.6 may not work together with 3.7. Set version to 3.6.16') + ' first'`,
    fieldPath: '.spec.version',
  },
];
