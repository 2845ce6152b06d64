/** The CA bundle of each port, and whether it is being rotated. */
import type { CertificatesView } from '../../access/evaluate/view.ts';

export interface TrustRow {
  readonly port: string;
  /** The first digits of the digest of the CA bundle that members which start now get. */
  readonly bundle: string;
  readonly state: string;
}

const SHORT = 10;

export const trustRows = ({ trusts }: CertificatesView): readonly TrustRow[] =>
  trusts.map(({ part, recorded = '', target, notReissued, loadedAtStart }) => ({
    port: part,
    bundle: recorded.slice(0, SHORT),
    state:
      recorded === '' || target === undefined || target === recorded
        ? 'settled'
        : notReissued.length > 0
          ? `CA rotation: ${notReissued.join(', ')} not reissued yet`
          : loadedAtStart
            ? 'CA rotation: members restart one after the other'
            : 'CA rotation',
  }));
