/** Optional fields, with the description that users read. */
import Type, {
  type TNumberOptions,
  type TProperties,
  type TSchema,
  type TSchemaOptions,
  type TStringOptions,
} from 'typebox';
import { atomic, localReference } from './text.ts';

const integer =
  (format: 'int32' | 'int64') =>
  (description: string, options: TNumberOptions = {}) =>
    Type.Optional(Type.Integer({ format, ...options, description }));

export const optionalInt32 = integer('int32');
export const optionalInt64 = integer('int64');

export const optionalText = (description: string, options: TStringOptions = {}) =>
  Type.Optional(Type.String({ ...options, description }));

export const optionalTime = (description: string) => optionalText(description, { format: 'date-time' });

export const optionalFlag = (description: string) => Type.Optional(Type.Boolean({ description }));

export const optionalEnum = <const Values extends string[]>(description: string, values: readonly [...Values]) =>
  Type.Optional(Type.Enum(values, { type: 'string', description }));

export const optionalObject = <Fields extends TProperties>(
  description: string,
  fields: Fields,
  rules: TSchemaOptions = {},
) => Type.Optional(Type.Object(fields, { description, ...rules }));

/** A list that is replaced as a whole. */
export const optionalList = <Item extends TSchema>(items: Item, maxItems: number) =>
  Type.Optional(Type.Array(items, { maxItems, ...atomic }));

export const optionalReference = (field: string, description: string) =>
  Type.Optional(localReference(field, description));
