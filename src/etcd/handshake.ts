/** Which certificate a member serves now. A kept session knows only the one that was served when it was opened. */
import { connect } from 'node:tls';
import { type TlsMaterial, tlsOptions } from './transport.ts';

/** Its fingerprint; `undefined` when no handshake succeeded. */
export function servedFingerprint(endpoint: string, tls: TlsMaterial, timeoutMs: number): Promise<string | undefined> {
  const { hostname, port } = new URL(endpoint);
  const host = hostname.replace(/^\[|\]$/g, '');
  return new Promise<string | undefined>((resolve) => {
    const socket = connect({ host, port: Number(port), ...tlsOptions({ endpoint, tls }) });
    const end = (fingerprint?: string): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(fingerprint);
    };
    const timer = setTimeout(end, timeoutMs);
    socket.once('secureConnect', () => end(socket.getPeerX509Certificate()?.fingerprint256));
    socket.once('error', () => end());
    socket.once('close', () => end());
  }).catch(() => undefined); // a key that does not match its certificate
}
