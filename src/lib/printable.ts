/** Text of others (an agent, a member, a server) that is shown to users: control characters could move a terminal's cursor or forge a log line. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();

/** The same, and not longer than this. Cut first: the text may be megabytes. */
export function shown(text: string, maxLength: number): string {
  const clean = printable(text.slice(0, 2 * maxLength));
  return clean.length > maxLength ? `${clean.slice(0, maxLength - 1)}…` : clean;
}
