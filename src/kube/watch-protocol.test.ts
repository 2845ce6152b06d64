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
    ['a bookmark inside the first list is ignored', START, { type: 'BOOKMARK', object: object('4') }, { state: START }],
    [
      'the marked bookmark ends the first list',
      START,
      { type: 'BOOKMARK', object: end },
      { state: following('9'), emit: { type: 'synced', resourceVersion: '9' } },
    ],
    [
      'a change is stored and moves the version that is resumed from',
      following('9'),
      { type: 'MODIFIED', object: object('10') },
      { state: following('10'), emit: { type: 'put', object: object('10') } },
    ],
    [
      'a deletion is stored and moves the version that is resumed from',
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
      'an expired version lists again, not older than it',
      following('9'),
      { type: 'ERROR', object: { code: 410 } },
      { state: listing('9'), over: true },
    ],
    [
      'a list that is as new as what was received is accepted',
      listing('9'),
      { type: 'BOOKMARK', object: end },
      { state: following('9'), emit: { type: 'synced', resourceVersion: '9' } },
    ],
    [
      'an older list is refused; versions compare as numbers, not as strings',
      listing('10'),
      { type: 'BOOKMARK', object: end },
      { state: listing('10'), over: true, behind: '9' },
    ],
    [
      'an older change is refused, and everything is listed again',
      following('10'),
      { type: 'MODIFIED', object: object('9') },
      { state: listing('10'), over: true, behind: '9' },
    ],
    [
      'an older bookmark, too',
      following('10'),
      { type: 'BOOKMARK', object: object('9') },
      { state: listing('10'), over: true, behind: '9' },
    ],
    [
      'any other error resumes at the same version',
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
    ['the version has expired: list again, not older than it', following('9'), 'gone', listing('9')],
    ['the CRD was deleted: list again when it is back, not older than before', following('9'), 'missing', listing('9')],
    ['the connection broke during the list: list again', START, 'failed', START],
    ['the server cannot stream lists: page', START, 'refused', paging],
    ['a refusal while following is not about streaming lists', following('9'), 'refused', following('9')],
  ])('%s', (_name, state, how, after) => {
    expect(onInterruption(state, how)).toEqual(after);
  });
});

test('a first watch requests the whole state, a resumed one the changes since', () => {
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
