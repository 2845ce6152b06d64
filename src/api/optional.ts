/** Optional fields of the plain types, with the description that users read. */
import Type, { type TNumberOptions, type TSchemaOptions, type TStringOptions } from 'typebox';

const integer =
  (format: 'int32' | 'int64') =>
  (description: string, options: TNumberOptions = {}) =>
    Type.Optional(Type.Integer({ format, ...options, description }));

export const optionalInt32 = integer('int32');
export const optionalInt64 = integer('int64');

export const optionalText = (description: string, options: TStringOptions = {}) =>
  Type.Optional(Type.String({ ...options, description }));

export const optionalFlag = (description: string, options: TSchemaOptions = {}) =>
  Type.Optional(Type.Boolean({ ...options, description }));
