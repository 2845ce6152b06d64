/** Without fields that are `undefined`: an optional field of an object is absent, because `undefined` would be written as null. */
export const present = <T extends object>(fields: T): { readonly [Name in keyof T]?: Exclude<T[Name], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as object;
