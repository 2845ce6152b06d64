/** Faults in what is decided about a snapshot. */
import { dropped, faults, type Mutant, moved } from './mutant.ts';

export const snapshot: readonly Mutant[] = [
  ...faults('src/snapshot/decide.ts', [
    ['a snapshot that is taken again after it has ended', ...dropped('over')],
    ['a Job that has stored, and is not heard', ...dropped('stored')],
    ['a Job that has failed, and runs for ever', ...dropped('jobFailed')],
    ['a result that is waited for without end', ...dropped('resultMissing')],
    ['a second Job beside one that runs', ...dropped('jobRuns')],
    ['a Job of somebody else that is overlooked', ...dropped('nameTaken')],
    ['a second Job for one that was deleted', ...dropped('jobLost')],
    ['a Job without an image', ...dropped('noImage')],
    ['a cluster that goes, and is asked for its data', ...dropped('clusterGoing')],
    ['a parked cluster that is waited for', ...dropped('parked')],
    ['a Pod that waits for a Secret in silence', ...dropped('lacking')],
    ['a cluster that has not formed, and is given up at once', ...dropped('notFormed')],
    ['a Job that cannot log in yet', ...dropped('authNotOn')],
    ['a Job that mounts nothing to come in with', ...dropped('noWayIn')],
    ['a stored snapshot that is lost because its cluster is gone', ...moved('noCluster', 'stored')],
    ['a Secret that somebody could have given while the cluster was made', ...moved('notFormed', 'lacking')],
    ['a parked cluster that is failed for a Secret, minutes later', ...moved('lacking', 'parked')],
  ]),
  ...faults('src/snapshot/observed.ts', [
    ['data of a learner', '!view.says.isLearner && ', ''],
    ['corrupt data', ' && !view.says.isCorrupt', ''],
    ["yesterday's data, of a follower that is far behind", 'head - v.applied <= MAX_LAG', 'true'],
    [
      'a leader that is asked although a follower could be',
      'order.find(follows) ?? order.find(leads)',
      'order.find(leads)',
    ],
    ['the follower that is furthest behind', 'b.applied - a.applied', 'a.applied - b.applied'],
    ['a follower that knows of no leader', 'v.leader !== undefined && ', ''],
    ['no snapshot of a cluster that has lost its quorum', ' ?? order[0])', ')'],
    ['a failed snapshot that is taken again', " || status?.phase === 'Failed'", ''],
  ]),
  ...faults('src/snapshot/rules/once.ts', [
    [
      'a snapshot that is made anew and fails by the Job of its predecessor',
      'if (o.isLeaving && left > 0)',
      'if (false)',
    ],
    ['a predecessor that is waited for without end', 'o.isLeaving && left > 0', 'o.isLeaving'],
    ['a snapshot that counts as lost before it was begun', "o.object.status?.phase !== 'Started'", 'false'],
  ]),
  ...faults('src/snapshot/rules/waiting.ts', [
    ['waiting without end', '  return left > 0\n    ? pending', '  return true\n    ? pending'],
    ['a deadline that nobody wakes up for', 'Math.min(left, everyMs)', 'everyMs'],
    ['the wrong reason after waiting for log-ins', "atLast: 'AuthLatchTimeout'", "atLast: 'WaitingForAuth'"],
    ['a cluster without log-ins that waits for them', 'o.cluster && wantsAuth(o.cluster.spec) && ', 'o.cluster && '],
  ]),
  ...faults('src/snapshot/rules/start.ts', [
    ['a moment without a leader that fails a snapshot', 'const GRACE_MS = 30_000;', 'const GRACE_MS = 0;'],
    ['members that are waited for without end', 'if (left > 0) return pending', 'if (true) return pending'],
    ['no word about what else is lacking', '[first, ...others].map', '[first].map'],
    ['a Job that is refused for ever', 'o.refusal !== undefined && patience(o) <= 0', 'false'],
    [
      'a refusal that nobody hears of',
      "    o.refusal === undefined\n      ? ['Starting'",
      "    true\n      ? ['Starting'",
    ],
    ['a Job that shows nothing where members want it', "['a certificate to show']", '[]'],
    ['a Job that logs in without a password', "['the password of root']", '[]'],
    ['a Job that trusts nobody', "['whom to trust']", '[]'],
  ]),
  ...faults('src/snapshot/rules/job.ts', [
    ['a result of a Pod that failed', 'ended(pod)?.exitCode === 0 && ', ''],
    ['a result that is missed because its Pod is heard of late', 'settledAt(job) - o.now', '0'],
    [
      'a Pod that is being stopped and has stored it, told as failed',
      'if (left > 0 && isStopping(o.job.object))',
      'if (false)',
    ],
    [
      'the reason of the first attempt',
      'const last = o.pods.at(-1);\n  const told',
      'const last = o.pods.at(0);\n  const told',
    ],
    ['a failure that claims success', 'if (told && !told.ok) return failed', 'if (told) return failed'],
    ['time that ran out, and is told as something else', "condition.reason === 'DeadlineExceeded'", 'false'],
    [
      'an image that cannot be pulled, and nobody hears of it',
      'if (trouble !== undefined) return running',
      'if (false) return running',
    ],
  ]),
  ...faults('src/snapshot/rules/result.ts', [
    [
      'a result that is about another place',
      "  if (!isAt(spec, name, artifact.uri)) return refused('it names another place than the destination');\n",
      '',
    ],
    [
      'a checksum that is none',
      "  if (!SHA256.test(artifact.checksum ?? '')) return refused('its checksum is none');\n",
      '',
    ],
    ['a snapshot without a size', '(artifact.sizeBytes ?? 0) < 1 || ', ''],
    [
      'letters that move a cursor',
      "  if (!words.every((text) => WORD.test(text))) return refused('it has a name that nothing is called');\n",
      '',
    ],
    [
      'a time that the API server refuses, again and again',
      "  if (takenAt !== undefined && !isMoment(takenAt)) return refused('the time that it names is none');\n",
      '',
    ],
    ['the data of another cluster', 'clusterID !== undefined && known !== undefined && clusterID !== known', 'false'],
    ['fields that nobody knows', '...Object.fromEntries(said)', '...told'],
    ['a token that is told with the place', 'uri === `${url.origin}${url.pathname}` && ', ''],
  ]),
  ...faults('src/api/job.ts', [
    ['results of Pods that others made', '.filter((pod) => controllerOf(pod)?.uid === job.metadata.uid)', ''],
    ['the first attempt as the last', 'madeAt(a) - madeAt(b)', 'madeAt(b) - madeAt(a)'],
    ['a Job that has ended before it has', " && each.status === 'True'", ''],
    [
      'a Job whose Pod is on a node that is gone, waited for for ever',
      "?? (givenUp && { ...givenUp, type: 'Failed' })",
      '',
    ],
  ]),
  ...faults('src/snapshot/observe.ts', [
    ['a second Job, because the cache is late', ' ?? (await ports.client.get(jobs, ref, signal))', ''],
    [
      'a cluster that counts as missing, because the cache is late',
      ' ?? (await read(ports.client, ports.clusters.resource, ref, signal))',
      '',
    ],
    [
      'a member that is going',
      "  if (deletionTimestamp !== undefined) return silent('the member is being deleted');\n",
      '',
    ],
    [
      'a Pod that is going',
      "  if (metadata.deletionTimestamp !== undefined) return silent('its Pod is being deleted');\n",
      '',
    ],
    [
      'data of another cluster',
      "  if (hexId(answer.value.clusterId) !== cluster.status?.clusterID) return silent('it speaks for another cluster');\n",
      '',
    ],
    ['a silence that begins anew with every look', 'silences.get(key) ?? now()', 'now()'],
    ['a silence of yesterday', '    silences.delete(key);\n', ''],
    ['a reference that names nothing and reads all', "ref.name === '' ? undefined : ", ''],
    ['questions about what has ended', '  if (isOver(object) || isGoing(object)) return seen;\n', ''],
  ]),
  ...faults('src/snapshot/build.ts', [
    [
      'two agents at once',
      "      podReplacementPolicy: 'Failed', // two agents at once would write the same object\n",
      '',
    ],
    ['a snapshot for a schedule that did not ask for it', 'owner?.kind === etcdSnapshotSchedules.kind', 'owner'],
    [
      'an agent that is stopped before it can say why',
      'deadlineSeconds(member) - BEFORE_SECONDS',
      'deadlineSeconds(member)',
    ],
    ['a large database that never has a snapshot', 'Math.ceil(says.databaseBytes / SLOWEST_BYTES_PER_SECOND)', '0'],
  ]),
  ...faults('src/snapshot/needs.ts', [
    ['a Secret with half of what is needed', 'list.every((key)', 'list.some((key)'],
    ['an account that nobody has said', "azure?.account === undefined ? ['AZURE_STORAGE_ACCOUNT'] : []", '[]'],
  ]),
  ...faults('src/snapshot/status.ts', [
    ['a beginning that is told as an Event', "const EXPECTED = ['Starting', ", 'const EXPECTED = ['],
    ['no time at which it was over', '    ...(isOver && { completionTime: iso(o.now) }),\n', ''],
    ['no time at which it began, after a crash', 'before.startTime ?? (o.job', 'before.startTime ?? (false && o.job'],
    ['a word that an earlier version said, for ever', ', [NOT_YET_SUPPORTED])', ')'],
  ]),
  ...faults('src/credentials/sources.ts', [
    [
      'an agent that does not trust whom members show in a rotation',
      'trusted !== undefined && digestOf(text(CA)) === trusted',
      'false',
    ],
    [
      'an agent with a certificate that members do not take yet',
      'text(CERT) === material.cert && text(KEY) === material.key',
      "text(CERT) !== ''",
    ],
    ['an agent with a password that etcd was not told yet', '[...proven, ...(password', '[...(password'],
  ]),
  ...faults('src/agent/own-endpoint.ts', [
    ['a token of the Pod for whoever writes an endpoint', 'hostname.endsWith(domain)', 'hostname.includes(domain)'],
    ['a token that everybody on the way can read', "protocol === 'https:' && ", ''],
  ]),
  ...faults('src/agent/azure-client.ts', [
    ['an account that is another host', ' && !ACCOUNT.test(account))', " && account.includes(' '))"],
    ['a token of Azure for whoever writes an endpoint', '  requireOwn(new URL(url), OWN);\n', ''],
    ['a connection string that leads to a metadata service', '  checkEndpoint(at);\n', ''],
  ]),
  ...faults('src/agent/gcs-client.ts', [
    [
      'a token of Google for whoever writes an endpoint',
      "if (place.credentials === 'ambient') requireOwn",
      'if (false) requireOwn',
    ],
  ]),
  ...faults('src/agent/guard.ts', [
    [
      'a name that leads to a metadata service',
      'else if (found.some(({ address }) => isRefused(address)))',
      'else if (found.length === 0)',
    ],
    ['the address of a metadata service', 'if (isIP(host) !== 0 && isRefused(host)) throw', 'if (false) throw'],
  ]),
];
