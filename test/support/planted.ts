/** Finds planted secrets in a text, in any form in which they could leak into it. */

/** The format of etcd's auth tokens, which only etcd and the operator may ever see. */
const TOKEN = /\b[A-Za-z]{16}\.\d+\b/;

/** The names of the planted secrets that are in the text, and everything that looks like a token. */
export function foundIn(text: string, planted: Readonly<Record<string, string>>): readonly string[] {
  const names = Object.entries(planted).flatMap(([name, value]) => {
    if (value === '') throw new Error(`${name} is empty, so a leak of it could not be found`);
    const forms = [
      value,
      JSON.stringify(value).slice(1, -1),
      Buffer.from(value).toString('base64'),
      encodeURIComponent(value),
    ];
    return forms.some((form) => text.includes(form)) ? [name] : [];
  });
  const [token] = TOKEN.exec(text) ?? [];
  return token === undefined ? names : [...names, `the token ${token}`];
}

/** The lines of a private key that are secret. */
export const keyLines = (name: string, pem: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    pem
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('-----'))
      .map((line, i) => [`line ${i + 1} of ${name}`, line]),
  );
