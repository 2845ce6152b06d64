/** The certificates of a member, as flags of its etcd and as files in its Pod. */
import type { EtcdMember } from '../api/etcd-member.ts';
import type { Volume, VolumeMount } from '../gen/kube.ts';

const FOLDER = '/etc/etcd/tls';
/** For the group of the Pod, which etcd is in, and nobody else. */
const MODE = 0o440;

export function tlsFlags({ spec: { tls } }: EtcdMember): readonly string[] {
  const [client, peer] = [`${FOLDER}/client`, `${FOLDER}/peer`];
  return [
    ...(tls?.clientServerSecretRef ? [`--cert-file=${client}/tls.crt`, `--key-file=${client}/tls.key`] : []),
    ...(tls?.clientServerSecretRef && tls.clientMTLS
      ? ['--client-cert-auth=true', `--trusted-ca-file=${client}/ca.crt`]
      : []),
    ...(tls?.peerSecretRef
      ? [
          `--peer-cert-file=${peer}/tls.crt`,
          `--peer-key-file=${peer}/tls.key`,
          `--peer-trusted-ca-file=${peer}/ca.crt`,
          '--peer-client-cert-auth=true',
        ]
      : []),
  ];
}

const places = ({ spec: { tls } }: EtcdMember) =>
  [
    { part: 'client', secret: tls?.clientServerSecretRef?.name },
    { part: 'peer', secret: tls?.peerSecretRef?.name },
  ].filter((place): place is { part: string; secret: string } => place.secret !== undefined);

export const tlsVolumes = (member: EtcdMember): readonly Volume[] =>
  places(member).map(({ part, secret }) => ({
    name: `tls-${part}`,
    secret: { secretName: secret, defaultMode: MODE },
  }));

export const tlsMounts = (member: EtcdMember): readonly VolumeMount[] =>
  places(member).map(({ part }) => ({ name: `tls-${part}`, mountPath: `${FOLDER}/${part}`, readOnly: true }));
