/** Faults in snapshots on a schedule: when they are due, whether they are young enough. */
import { dropped, faults, type Mutant, moved } from './mutant.ts';

const cron = faults('src/lib/cron.ts', [
  ['a schedule that never comes and is looked for for ever', 'return isNever(cron, isStar(fields[4]))', 'return false'],
  ['Sunday as the seventh day that never comes', 'value === field.alias ? field.min : value', 'value'],
  [
    'a step of nothing that is taken for every one',
    "if (step === 0) return 'has a step of 0';",
    'if (step === 0) return { from: field.min, to: field.max, step: 1 };',
  ],
  ['a range that goes backwards', "from > to ? 'ends before it begins' : { from, to, step }", '{ from, to, step }'],
  ['5/20 that is only 5', '(every === undefined ? from : field.max)', 'from'],
  ['a zone that is given twice', 'if (named !== undefined && timeZone !== undefined)', 'if (false)'],
  ['a moment that is due again and again', 'at > time : at <= time', 'at >= time : at <= time'],
  ['one that is due now and was not', 'at > time : at <= time', 'at > time : at < time'],
  [
    'the 13th and Friday, instead of or',
    'byDay && byWeekday : byDay || byWeekday',
    'byDay && byWeekday : byDay && byWeekday',
  ],
  [
    'days that follow each other where clocks are put back',
    'if (found !== undefined && i > 1) return best;',
    'if (best !== undefined) return best;',
  ],
  ['an hour that comes twice, and only one backup in it', "hours.length === 24 ? 'both' : 'once'", "'once'"],
  ['a nightly backup that is taken twice', "hours.length === 24 ? 'both' : 'once'", "'both'"],
]);

const zone = faults('src/lib/zone.ts', [
  ['a backup that is left out when clocks are put forward', 'return [real[0] ?? change];', 'return real;'],
  ['a change that is not noticed', 'return before === after ? before : undefined;', 'return before;'],
  ['offsets that are taken for zones', ' || !/^[A-Za-z]/.test(name)) return false;', ') return false;'],
]);

const slots = faults('src/snapshot-schedule/slots.ts', [
  [
    'a clock that was ahead stops the schedule until then',
    'return last <= now + TOLERANCE_MS ? last : now;',
    'return last;',
  ],
  [
    'a jitter that reaches the next snapshot',
    'Math.min(most, (nextAfter(cron, slot) ?? Number.POSITIVE_INFINITY) - slot - 1000)',
    'most',
  ],
  ['a jitter that is the same for all', 'hash32(`${schedule.metadata.uid}/${slot}`) % steps', '0'],
  ['minutes before the schedule was made', 'const since = Math.max(created, begun ?? 0);', 'const since = begun ?? 0;'],
  ['a year that is counted minute by minute', ' && missed < MOST', ''],
  ['what was missed is told in every pass', ' && at(slot).at >= announced', ''],
]);

const scheduling = faults('src/snapshot-schedule/scheduling.ts', [
  [
    'a second snapshot when the record of the first was lost',
    '(recorded ?? proven) : Math.max(recorded, proven)',
    'recorded : recorded',
  ],
  ['snapshots while suspended', 'if (suspend === true)', 'if (false)'],
  [
    'snapshots of a cluster that goes',
    '!o.cluster || o.cluster.metadata.deletionTimestamp !== undefined',
    '!o.cluster',
  ],
  ['snapshots of nobody', 'if (o.cluster.spec.replicas === 0)', 'if (false)'],
  ['one that begins too late', 'deadline !== undefined && o.now - due.at >', 'deadline === 0 && o.now - due.at >'],
  [
    'an operator that was busy for a moment, and no backup',
    'Math.max(deadline * 1000, LEAST_DEADLINE_MS)',
    'deadline * 1000',
  ],
  [
    'an object of somebody else that is run into',
    "o.due.is === 'absent' ? concurrently",
    "o.due.is !== 'ours' ? concurrently",
  ],
  ['two at once although that is forbidden', "?? 'Forbid'", "?? 'Allow'"],
  ['one that is not ended when it is replaced', 'due, instead: active };', 'due, instead: [] };'],
]);

const facts = faults('src/snapshot-schedule/facts.ts', [
  [
    'a success that is counted twice',
    'isStored(run) && slot > known && slot <= o.now',
    'isStored(run) && slot <= o.now',
  ],
  [
    'a last success that a wrong clock made the last for ever',
    'return slot <= o.now ? slot : Number.NEGATIVE_INFINITY;',
    'return slot;',
  ],
  ['a retention that is carried out again and again', "ended?.is !== 'done' || (", "ended?.is !== 'failed' || ("],
  ['a retention that was edited and is not carried out', '&& stored?.policy === policyOf(o.object)', ''],
  [
    'a drill that failed after the next snapshot was stored, and nobody hears of it',
    'work.job.metadata.name === jobNames(o.object, about)[task])',
    'about === statusBefore(o).lastSuccessful?.name && work.job.metadata.name === jobNames(o.object, about)[task])',
  ],
  [
    'a snapshot that is not tried out, because one before it was for long',
    '(before.successes ?? 0) - since.length',
    'before.successes ?? 0',
  ],
  [
    'good snapshots removed while etcdutl cannot restore the new ones',
    "['StoreUnreachable', 'AccessDenied', 'NoSpace'];",
    "['StoreUnreachable', 'AccessDenied', 'NoSpace', 'RestoreToolFailed'];",
  ],
  [
    'a store that was unreachable, and nothing is ever removed',
    'return INCONCLUSIVE.includes(reason) ? earlierFailure : { name, reason };',
    'return { name, reason };',
  ],
  [
    'a hold that ends because the next drill did not reach the store',
    'INCONCLUSIVE.includes(reason) ? unrestored(before) : undefined',
    'undefined',
  ],
  [
    'the only snapshot that a drill restored, not recorded',
    'return restored(o, { lastDrill: {',
    'return ({ lastDrill: {',
  ],
  ['protection that never moves on', 'lastRestored?.name === lastDrill.name) return {};', 'lastRestored) return {};'],
  [
    'an upgrade that loses what an earlier operator had proven',
    'isKnown(o, ended, before.lastDrill?.name)) return restored(o, before);',
    'isKnown(o, ended, before.lastDrill?.name)) return {};',
  ],
  ['a drill that is told as a success', 'succeeded: false, reason, message', 'succeeded: true, reason, message'],
]);

const outcome = faults('src/snapshot-schedule/outcome.ts', [
  [
    'a Pod that is believed about another task',
    '.find((result) => !result.ok || result.task === task)',
    '.find(() => true)',
  ],
  ['a Job that failed and is believed', "condition.type === 'Complete' && told?.ok === true)", 'told?.ok === true)'],
  ['a Pod that was heard of too late', 'if (now < until) return', 'if (now < at) return'],
]);

const rules = faults('src/snapshot-schedule/rules/stored.ts', [
  ['two that remove at once', "isMade(o, 'prune', run) || isBusy(o, 'prune')", "isMade(o, 'prune', run)"],
  ['a Job that is made again as long as it is there', "isPruned(o) || isMade(o, 'prune', run) ||", 'isPruned(o) ||'],
  [
    'the last good one that goes, because what replaces it was not tried out yet',
    "pruneHeldUp(o) !== undefined || isBusy(o, 'drill')",
    'pruneHeldUp(o) !== undefined',
  ],
  [
    'the last good one that goes for one that cannot be restored',
    "if (pruneHeldUp(o) !== undefined || isBusy(o, 'drill'))",
    "if (isBusy(o, 'drill'))",
  ],
  [
    'a drill that restores what a running prune Job does not protect',
    "isBusy(o, 'drill') || isBusy(o, 'prune')) return undefined;\n  const found",
    "isBusy(o, 'drill')) return undefined;\n  const found",
  ],
  ['a Job without an image', "o.operatorImage !== '' && o.cluster &&", 'o.cluster &&'],
  ['a drill of each one, although every tenth is wanted', '>= (drill.every ?? 1)', '>= 1'],
  ['a drill that failed and is forgotten until its turn', '!lastDrill?.succeeded ||', '!lastDrill ||'],
  [
    'the same snapshot tried out for ever',
    '|| lastDrill?.name === lastSuccessful.name) return false;',
    ') return false;',
  ],
  [
    'a drill that is said to be held up while it is done',
    'const found = isDrillToBeMade(o) ?',
    'const found = isDrillDue(o) ?',
  ],
  [
    'an image that nobody allowed',
    'if (repository !== undefined && !isAllowed(o.images, repository))',
    'if (repository === "")',
  ],
  [
    'a record that is removed before anybody knows of it',
    'recorded !== undefined && slotIn(o, identity(run).name) <= slotIn(o, recorded)',
    'true',
  ],
  [
    'the record of the last good one, removed',
    '!isGoing(run) && identity(run).name !== lastSuccessful?.name',
    '!isGoing(run)',
  ],
]);

const order = faults('src/snapshot-schedule/decide.ts', [
  ['a schedule that goes and goes on', ...dropped('beingDeleted')],
  ['what happened is never recorded', ...dropped('record')],
  ['no snapshot at all', ...dropped('begin')],
  ['nothing is ever removed', ...dropped('prune')],
  ['nothing is ever tried out', ...dropped('drill')],
  ['a history without an end', ...dropped('trimHistory')],
  ['a snapshot that is begun on an old record', ...moved('begin', 'record')],
]);

const status = faults('src/snapshot-schedule/status.ts', [
  [
    'a snapshot that waits and is not the next',
    "if (scheduling.is !== 'held') return",
    "if (scheduling.is === 'idle' || scheduling.is === 'held') return",
  ],
  [
    'an edit that is told as if something was missed',
    '&& said.observedGeneration === o.object.metadata.generation',
    '',
  ],
  ['a sleep through a clock that is put forward', 'Math.min(LONGEST_SLEEP_MS, ...moments)', 'Math.min(...moments)'],
  [
    'a failure that an older success hides',
    'slot(lastFailed.name) > slot(lastSuccessful?.name)',
    'lastSuccessful === undefined',
  ],
]);

const backup = faults('src/cluster/backup.ts', [
  ['an old backup that nobody hears of', 'if (o.now < staleAt)', 'if (o.now < Infinity)'],
  ['the mildest demand instead of the strictest', 'a.ms - b.ms ||', 'b.ms - a.ms ||'],
  [
    'a schedule that goes and still demands',
    ' || metadata.deletionTimestamp !== undefined) return [];',
    ') return [];',
  ],
  ['the oldest backup instead of the newest', 'Math.max(...all)', 'Math.min(...all)'],
  [
    'the backup of a cluster that is gone, taken for one of this',
    'told === undefined || known === undefined ||',
    'told !== known ||',
  ],
  [
    'a new cluster that is late on its first day',
    'staleAt: (newest ?? began)',
    'staleAt: (newest ?? strictest.created)',
  ],
  ['a backup that becomes too old while nobody looks', 'return left > 0 ? left : undefined;', 'return undefined;'],
]);

const clock = faults('src/api/etcd-snapshot-schedule.ts', [
  ['a backup that is fresh for years, by the clock of a node', 'Math.min(...known)', 'Math.max(...known)'],
]);

export const schedule: readonly Mutant[] = [
  ...cron,
  ...zone,
  ...slots,
  ...scheduling,
  ...facts,
  ...outcome,
  ...rules,
  ...order,
  ...status,
  ...backup,
  ...clock,
];
