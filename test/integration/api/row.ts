/** A row of the tables: what is written, and how the API server responds. */

/** Refused with this in the message; accepted when absent. */
export type Row = readonly [what: string, spec: object, refused?: string];
/** The spec is accepted first; then it is changed to this one. */
export type EditRow = readonly [
  what: string,
  before: object,
  after: object,
  refused?: string | undefined,
  status?: object,
];

export const ref = (name: string) => ({ name });
