/** `3.6.16` → 3006016: versions compare as numbers. */
export function versionNumber(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split('.', 3).map(Number);
  return (major * 1000 + minor) * 1000 + patch;
}
