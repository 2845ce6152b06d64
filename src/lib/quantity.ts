/** Kubernetes quantities, compared by value: `1Gi` and `1024Mi` are the same size. */

const BINARY = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const DECIMAL: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };
/** The API accepts no longer ones. A number of 1 MiB of digits takes seconds to parse, and so does 1e5000000. */
export const MAX_QUANTITY_LENGTH = 64;
const SHAPE = /^([+-]?)(\d*)(?:\.(\d*))?(?:([KMGTPE]i)|([numkMGTPE]?)|[eE]([+-]?0*\d{1,3}))$/;

/** The exact value in billionths; `undefined` when the text is not a quantity within these limits. Smaller parts are truncated. */
export function parseQuantity(value: string | number): bigint | undefined {
  const text = String(value);
  const found = text.length > MAX_QUANTITY_LENGTH ? undefined : SHAPE.exec(text);
  if (!found) return undefined;
  const [, sign, whole = '', fraction = '', binary, decimal, exponent] = found;
  if (whole === '' && fraction === '') return undefined;
  const digits = BigInt(whole + fraction);
  const scale = 9 - fraction.length + (exponent === undefined ? (DECIMAL[decimal ?? ''] ?? 0) : Number(exponent));
  const factor = binary === undefined ? 1n : 1024n ** BigInt(BINARY.indexOf(binary) + 1);
  const magnitude = scale >= 0 ? digits * factor * 10n ** BigInt(scale) : (digits * factor) / 10n ** BigInt(-scale);
  return sign === '-' ? -magnitude : magnitude;
}

/** As a number, rounded down; 0 when the text is not a quantity. */
export const quantityBytes = (value: string | number): number => Number((parseQuantity(value) ?? 0n) / 1_000_000_000n);

/** Whether two quantities have the same value; text that is not a quantity equals only itself. */
export function sameQuantity(a: string | number, b: string | number): boolean {
  const left = parseQuantity(a);
  return left === undefined ? String(a) === String(b) : left === parseQuantity(b);
}
