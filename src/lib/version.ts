/** The API server accepts no longer version; an older object may have one of a megabyte, which takes long to parse. */
const LONGEST = 32;

/** `3.6.16` → 3006016: versions compare as numbers. */
export function versionNumber(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.slice(0, LONGEST).split('.', 3).map(Number);
  return (major * 1000 + minor) * 1000 + patch;
}
