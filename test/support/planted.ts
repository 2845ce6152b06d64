/** What nobody may ever read: whether it is in a text, in any of the forms in which it could have come there. */

/** Tokens of etcd look like this: nobody but etcd and the operator has seen them. */
const TOKEN = /\b[A-Za-z]{16}\.\d+\b/;

/** By name, what was planted; the names of those that are in the text, and what looks like a token. */
export function foundIn(text: string, planted: Readonly<Record<string, string>>): readonly string[] {
  const names = Object.entries(planted).flatMap(([name, value]) => {
    if (value === '') throw new Error(`${name} is empty: it would be found nowhere`);
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

/** The lines of a private key that say something. */
export const keyLines = (name: string, pem: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    pem
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('-----'))
      .map((line, i) => [`line ${i + 1} of ${name}`, line]),
  );
