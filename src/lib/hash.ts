/** Short names from numbers: the same input gives the same letters on every machine and in every version. */

/** Consonants and digits that cannot be confused with each other or spell a word. */
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const LENGTH = 5;
const SPACE = LETTERS.length ** LENGTH;
/** Coprime to SPACE (a power of three), so that different counters never collide. */
const STRIDE = 7_368_787;
/** The inverse of STRIDE modulo SPACE. */
const INVERSE = 11_332_981;

/** FNV-1a with a final mix: not cryptographic, only to distribute names. */
export function hash32(text: string): number {
  let h = 0x811c9dc5;
  const bytes = new TextEncoder().encode(text);
  // Not with the iterator, which takes 8 ms for the 1 MiB that a tenant may write.
  for (let i = 0; i < bytes.length; i++) h = Math.imul(h ^ (bytes[i] ?? 0), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Five characters for the `counter`-th name of `seed`; never the same for two counters below fourteen million. */
export function shortName(seed: string, counter: number): string {
  let rest = (hash32(seed) + counter * STRIDE) % SPACE;
  let name = '';
  for (let i = 0; i < LENGTH; i++) {
    name += LETTERS[rest % LETTERS.length];
    rest = Math.floor(rest / LETTERS.length);
  }
  return name;
}

/** The counter below fourteen million that a name of `seed` was derived from; `undefined` when it is not such a name. */
export function counterOf(seed: string, name: string): number | undefined {
  if (name.length !== LENGTH) return undefined;
  const digits = Array.from(name, (letter) => LETTERS.indexOf(letter));
  if (digits.includes(-1)) return undefined;
  const number = digits.reduceRight((rest, digit) => rest * LETTERS.length + digit, 0);
  return (((number - (hash32(seed) % SPACE) + SPACE) % SPACE) * INVERSE) % SPACE;
}
