import { expect, test } from 'vitest';
import { AgentFailure } from '../failure.ts';
import { errorInfo, isPassing, Refusal } from './error-info.ts';
import { type ErrorPhrases, errorMessage } from './error-message.ts';
import { BodyFailure } from './multipart.ts';

const phrases: ErrorPhrases = {
  place: 'the bucket "b"',
  permissions: 'they need ListBucket',
  codes: { NoSuchBucket: ['BucketNotFound', 'there is no such bucket'] },
};
const system = (code: string): Error => Object.assign(new Error('secret in a message'), { code });
const aws = (status: number, name: string): Error =>
  Object.assign(new Error('secret in a message'), { name, $metadata: { httpStatusCode: status } });
const azure = (statusCode: number, code: string): Error =>
  Object.assign(new Error('secret in a message'), { name: 'RestError', statusCode, code });

const table: readonly (readonly [string, unknown, reason: string, passing: boolean])[] = [
  ['a missing bucket', aws(404, 'NoSuchBucket'), 'BucketNotFound', false],
  ['a forbidden HEAD, which has no body', aws(403, 'Unknown'), 'AccessDenied', false],
  [
    'a missing bucket, said in the head of an answer without text',
    { name: 'RestError', statusCode: 404, details: { errorCode: 'NoSuchBucket' } },
    'BucketNotFound',
    false,
  ],
  ['no authentication', new Refusal(401, 'authError'), 'AccessDenied', false],
  ['an object that was created meanwhile', azure(409, 'BlobAlreadyExists'), 'ObjectExists', false],
  ['a condition that does not hold', azure(412, 'ConditionNotMet'), 'ObjectExists', false],
  ['a conditional write beside another write', aws(409, 'ConditionalRequestConflict'), 'StoreUnreachable', true],
  ['a full service', aws(507, 'InsufficientStorage'), 'NoSpace', false],
  ['a redirect', aws(301, 'PermanentRedirect'), 'Misconfigured', false],
  ['a bad request', aws(400, 'InvalidArgument'), 'Misconfigured', false],
  ['an overloaded service', aws(503, 'SlowDown'), 'StoreUnreachable', true],
  ['a request that was sent too slowly', aws(400, 'RequestTimeout'), 'StoreUnreachable', true],
  ['too many requests', new Refusal(429, 'rateLimitExceeded'), 'StoreUnreachable', true],
  ['a refused connection', system('ECONNREFUSED'), 'StoreUnreachable', true],
  [
    'a lost connection inside another error',
    new Error('x', { cause: system('UND_ERR_SOCKET') }),
    'StoreUnreachable',
    true,
  ],
  ['all addresses failing', new AggregateError([system('ETIMEDOUT')]), 'StoreUnreachable', true],
  ['an unknown host name', azure(undefined as unknown as number, 'ENOTFOUND'), 'StoreUnreachable', true],
  ['a certificate of an unknown CA', system('SELF_SIGNED_CERT_IN_CHAIN'), 'Misconfigured', false],
  ['a certificate for another name', system('ERR_TLS_CERT_ALTNAME_INVALID'), 'Misconfigured', false],
  ['a bug', new TypeError('secret in a message'), 'Internal', false],
  ['not even an error', 'secret', 'Internal', false],
];

test.each(table)('%s', (_, error, reason, passing) => {
  const explained = errorMessage(error, phrases, 'a/b.db');
  expect(explained).toBeInstanceOf(AgentFailure);
  expect(explained).toMatchObject({ reason });
  expect((explained as Error).message).toMatch(/^the bucket "b", key "a\/b.db": /);
  expect((explained as Error).message).not.toContain('secret');
  expect(isPassing(errorInfo(error))).toBe(passing);
});

test('S4: a status does not tell a closed port from a filtered or a silent one', () => {
  const messages = ['ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ECONNRESET', 'UND_ERR_CONNECT_TIMEOUT'].map(
    (code) => (errorMessage(system(code), phrases, 'k') as Error).message,
  );
  expect(new Set(messages).size).toBe(1);
  expect((errorMessage(system('ENOTFOUND'), phrases, 'k') as Error).message).toContain('ENOTFOUND');
});

test('an AgentFailure, and a failure of the body, are passed on as they are', () => {
  const ours = new AgentFailure('WrongKey', 'x');
  const theirs = new Error('the member went away');
  expect(errorMessage(ours, phrases, 'a')).toBe(ours);
  expect(errorMessage(new BodyFailure(theirs), phrases, 'a')).toBe(theirs);
});

test('access denied reports the permissions that are needed', () => {
  expect(errorMessage(aws(403, 'Forbidden'), phrases, 'a')).toMatchObject({
    message: expect.stringContaining('ListBucket'),
  });
});

test('a code that is not an identifier is not reported', () => {
  expect(errorInfo(Object.assign(new Error('x'), { code: 'a code with a secret in it', statusCode: 400 }))).toEqual({
    status: 400,
  });
});
