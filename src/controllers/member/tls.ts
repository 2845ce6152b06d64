/** The TLS flags of a member's etcd, and the Secrets that its Pod mounts for them. */
import type { EtcdCluster } from '../../api/etcd-cluster.ts';
import type { EtcdMember } from '../../api/etcd-member.ts';
import { type EtcdPortName, peerMountName, serverMountName, trustName } from '../../api/names.ts';
import type { Volume, VolumeMount } from '../../gen/kube.ts';

const FOLDER = '/etc/etcd/tls';
/** Readable by the Pod's fsGroup, which etcd runs in, and by no other user. */
const MODE = 0o440;

export function tlsFlags({ spec: { tls } }: EtcdMember): readonly string[] {
  const client = `${FOLDER}/client`;
  return [
    ...(tls?.clientServerSecretRef ? [`--cert-file=${client}/tls.crt`, `--key-file=${client}/tls.key`] : []),
    ...(tls?.clientServerSecretRef && tls.clientMTLS
      ? ['--client-cert-auth=true', `--trusted-ca-file=${client}/ca.crt`]
      : []),
    ...peerFlags(tls),
  ];
}

function peerFlags(tls: EtcdMember['spec']['tls']): readonly string[] {
  if (!tls?.peerSecretRef) return tls?.peerAutoTLS === true ? ['--peer-auto-tls'] : [];
  const peer = `${FOLDER}/peer`;
  return [
    `--peer-cert-file=${peer}/tls.crt`,
    `--peer-key-file=${peer}/tls.key`,
    `--peer-trusted-ca-file=${peer}/ca.crt`,
    '--peer-client-cert-auth=true',
    // Without it, etcd accepts every certificate of the CA, also that of an application.
    ...(tls.peerCertAllowedHostname === undefined
      ? []
      : [`--peer-cert-allowed-hostname=${tls.peerCertAllowedHostname}`]),
  ];
}

type Trust = NonNullable<EtcdCluster['status']>['trust'];

/** An earlier operator mounted the user's own Secret; once `status.trust` records a CA bundle, the managed Secrets replace it. */
function places({ spec: { tls, clusterName } }: EtcdMember, trust: Trust) {
  const place = (part: EtcdPortName, stated: string | undefined, mount: string, reads: boolean) => {
    const digest = trust?.[part];
    if (stated === undefined) return [];
    if (digest === undefined) return [{ part, leaf: stated }];
    return [{ part, leaf: mount, ...(reads && { bundle: trustName(clusterName, part, digest) }) }];
  };
  return [
    ...place('client', tls?.clientServerSecretRef?.name, serverMountName(clusterName), tls?.clientMTLS === true),
    ...place('peer', tls?.peerSecretRef?.name, peerMountName(clusterName), true),
  ];
}

const keys = (...names: readonly string[]) => names.map((key) => ({ key, path: key }));

/**
 * The leaf may change in a running Pod: etcd reads it at every handshake. etcd reads the CA bundle once, at start, so it comes
 * from a Secret that never changes: the Pod's spec then states which bundle etcd has read, whatever the kubelet has cached.
 */
export const tlsVolumes = (member: EtcdMember, trust: Trust): readonly Volume[] =>
  places(member, trust).map(({ part, leaf, bundle }) => ({
    name: `tls-${part}`,
    ...(bundle === undefined
      ? { secret: { secretName: leaf, defaultMode: MODE } }
      : {
          projected: {
            defaultMode: MODE,
            sources: [
              { secret: { name: leaf, items: keys('tls.crt', 'tls.key') } },
              { secret: { name: bundle, items: keys('ca.crt') } },
            ],
          },
        }),
  }));

export const tlsMounts = (member: EtcdMember): readonly VolumeMount[] =>
  places(member, undefined).map(({ part }) => ({
    name: `tls-${part}`,
    mountPath: `${FOLDER}/${part}`,
    readOnly: true,
  }));
