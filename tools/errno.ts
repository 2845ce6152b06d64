/** Errors of the operating system as a sentence: a full disk or a missing permission is no bug of the tools. */

const SENTENCES: Readonly<Record<string, (path: string) => string>> = {
  ENOSPC: (path) => `no space is left on the disk${path && ` for ${path}`}: free some, then run this again.`,
  EDQUOT: (path) =>
    `the disk quota of this user is used up${path && `, at ${path}`}: free some space, then run this again.`,
  EROFS: (path) => `${path || 'the file system'} is read-only, and this has to write there.`,
  EACCES: (path) => `this user has no permission for ${path || 'that'}: run this as its owner, or as root.`,
  EPERM: (path) => `this user has no permission for ${path || 'that'}: run this as its owner, or as root.`,
};

/** Undefined for any other error. */
export function errnoSentence(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path, dest } = error as NodeJS.ErrnoException & { readonly dest?: string };
  return SENTENCES[code ?? '']?.(dest ?? path ?? '');
}
