/** Whether members have the same data: hashes of all keys at one revision. */

export interface HashRow {
  readonly name: string;
  /** Hexadecimal. */
  readonly hash?: string;
  readonly revision?: number;
  readonly compactRevision?: number;
  readonly problem?: string;
}

export interface HashVerdict {
  readonly is: 'same' | 'different' | 'unknown';
  readonly message: string;
}

/** `isAll`: the rows are all members. Hashes are comparable only where the compact revisions agree: etcd hashes what is not compacted. */
export function compareHashes(rows: readonly HashRow[], isAll = true): HashVerdict {
  const hashed = rows.filter(({ hash }) => hash !== undefined);
  const silent = rows.filter(({ hash }) => hash === undefined).map(({ name }) => name);
  if (isAll && rows.length === 1 && hashed.length === 1)
    return { is: 'same', message: 'there is one member: no other could have different data' };
  if (hashed.length < 2)
    return { is: 'unknown', message: 'fewer than two members responded: there is nothing to compare with' };
  const hashes = new Set(hashed.map(({ hash }) => hash));
  const compacted = new Set(hashed.map(({ compactRevision }) => compactRevision));
  if (hashes.size > 1 && compacted.size > 1)
    return {
      is: 'unknown',
      message: 'the members have not compacted the same revisions yet, so their hashes differ anyway: run it again',
    };
  if (hashes.size > 1)
    return {
      is: 'different',
      message:
        'the data of the members differs: see DataInconsistent in docs/operations.md before anything else is changed',
    };
  return silent.length > 0
    ? { is: 'unknown', message: `those that responded have the same data; ${silent.join(', ')} did not respond` }
    : { is: 'same', message: 'all members have the same data' };
}
