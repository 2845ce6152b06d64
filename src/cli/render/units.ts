/** Sizes, ages and shares as people read them. */

const STEPS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** Three digits: `24.0 MiB`, `512 KiB`. */
export function bytes(amount: number): string {
  let [value, step] = [amount, 0];
  // From 999.5 on, three digits would round to 1000.
  while (value >= 999.5 && step < STEPS.length - 1) {
    value /= 1024;
    step++;
  }
  const digits = step === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${STEPS[step]}`;
}

export const percent = (part: number, whole: number): string =>
  whole <= 0 ? '-' : `${((100 * part) / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %`;

const UNITS: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
];

/** The two largest units: `3d4h`, `5m10s`, `0s`. Whole days from ten on. */
export function duration(ms: number): string {
  const first = UNITS.findIndex(([, unit]) => ms >= unit);
  if (first === -1) return '0s';
  const [name, unit] = UNITS[first] as readonly [string, number];
  const large = Math.floor(ms / unit);
  const [smallName, smallUnit] = UNITS[first + 1] ?? ['', 0];
  const small = smallUnit === 0 ? 0 : Math.floor((ms % unit) / smallUnit);
  return `${large}${name}${small === 0 || large >= 10 ? '' : `${small}${smallName}`}`;
}

export const ago = (at: number, now: number): string => `${duration(Math.max(0, now - at))} ago`;
/** `in 3d`, or `3d ago` once it has passed. */
export const when = (at: number, now: number): string => (at > now ? `in ${duration(at - now)}` : ago(at, now));

export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
