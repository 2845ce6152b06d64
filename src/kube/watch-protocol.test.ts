import { describe, expect, test } from 'vitest';
import type { KubeObject } from './object.ts';
import { onEvent, onInterruption, START, type WatchState, type WireEvent, watchQuery } from './watch-protocol.ts';

const object = (resourceVersion: string, annotations?: Record<string, string>): KubeObject => ({
  metadata: { name: 'a', namespace: 'n', resourceVersion, ...(annotations && { annotations }) },
});
const following = (resourceVersion: string): WatchState => ({ phase: 'following', resourceVersion });
const paging: WatchState = { phase: 'paging', floor: '' };
const listing = (floor: string): WatchState => ({ phase: 'listing', floor });
const end = object('9', { 'k8s.io/initial-events-end': 'true' });

describe('one event', () => {
  test.each<[string, WatchState, WireEvent<KubeObject>, ReturnType<typeof onEvent>]>([
    [
      'an object of the first list is stored, and the list goes on',
      START,
      { type: 'ADDED', object: object('3') },
      { state: START, emit: { type: 'put', object: object('3') } },
    ],
    [
      'a bookmark inside the first list means nothing',
      START,
      { type: 'BOOKMARK', object: object('4') },
      { state: START },
    ],
    [
      'the marked bookmark ends the first list',
      START,
      { type: 'BOOKMARK', object: end },
      { state: following('9'), emit: { type: 'synced', resourceVersion: '9' } },
    ],
    [
      'a change is stored and remembered',
      following('9'),
      { type: 'MODIFIED', object: object('10') },
      { state: following('10'), emit: { type: 'put', object: object('10') } },
    ],
    [
      'a deletion is stored and remembered',
      following('9'),
      { type: 'DELETED', object: object('10') },
      { state: following('10'), emit: { type: 'delete', object: object('10') } },
    ],
    [
      'a bookmark moves the version that is resumed from',
      following('9'),
      { type: 'BOOKMARK', object: object('20') },
      { state: following('20'), emit: { type: 'progress', resourceVersion: '20' } },
    ],
    [
      'an expired version starts over, and not from before it',
      following('9'),
      { type: 'ERROR', object: { code: 410 } },
      { state: listing('9'), over: true },
    ],
    [
      'a list that is as new as what was seen is good',
      listing('9'),
      { type: 'BOOKMARK', object: end },
      { state: following('9'), emit: { type: 'synced', resourceVersion: '9' } },
    ],
    [
      'a list from the past is refused, by number and not by letter',
      listing('10'),
      { type: 'BOOKMARK', object: end },
      { state: listing('10'), over: true, behind: '9' },
    ],
    [
      'a change from the past is refused, and the whole is listed again',
      following('10'),
      { type: 'MODIFIED', object: object('9') },
      { state: listing('10'), over: true, behind: '9' },
    ],
    [
      'a bookmark from the past, too',
      following('10'),
      { type: 'BOOKMARK', object: object('9') },
      { state: listing('10'), over: true, behind: '9' },
    ],
    [
      'any other error resumes from where it was',
      following('9'),
      { type: 'ERROR', object: { code: 500 } },
      { state: following('9'), over: true },
    ],
  ])('%s', (_name, state, event, step) => {
    expect(onEvent(state, event)).toEqual(step);
  });
});

describe('an interruption', () => {
  test.each<[string, WatchState, Parameters<typeof onInterruption>[1], WatchState]>([
    ['the server ended a followed watch: resume', following('9'), 'ended', following('9')],
    ['the connection broke: resume', following('9'), 'failed', following('9')],
    ['the version is too old: list again, and not from before it', following('9'), 'gone', listing('9')],
    ['the kind has gone: list again when it is back, and not from before', following('9'), 'missing', listing('9')],
    ['the list broke half-way: list again', START, 'failed', START],
    ['the server cannot stream lists: page', START, 'refused', paging],
    ['a refusal later is not about streaming', following('9'), 'refused', following('9')],
  ])('%s', (_name, state, how, after) => {
    expect(onInterruption(state, how)).toEqual(after);
  });
});

test('a first watch asks for the whole state, a resumed one for changes since', () => {
  expect(watchQuery(START, 290, 'a=b')).toEqual({
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '290',
    labelSelector: 'a=b',
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
  });
  expect(watchQuery(following('9'), 290)).toEqual({
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: '290',
    resourceVersion: '9',
  });
});
