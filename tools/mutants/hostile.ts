/** Faults by which one tenant keeps the operator from its other work. */
import { faults, type Mutant } from './mutant.ts';

const pieces = faults('src/pki/pieces.ts', [
  ['a judgement that takes all the time it wants', 'if (piece.progress && piece.isOver()) throw new Pause();', ''],
  ['a judgement that never ends', 'if (piece.progress && piece.isOver())', 'if (piece.isOver())'],
  ['a judgement that starts over after each pause', 'if (results.has(step)) return', "if (step === '') return"],
]);

const lib = [
  ...faults('src/lib/quantity.ts', [
    ['a size of many digits', 'text.length > MAX_QUANTITY_LENGTH ? undefined : SHAPE', 'SHAPE'],
    ['a size with a large exponent', '[+-]?0*\\d{1,3}', '[+-]?\\d+'],
  ]),
  ...faults('src/lib/duration.ts', [['a duration of many parts', 'text.length > MAX_LENGTH || ', '']]),
  ...faults('src/lib/cron.ts', [
    ['a schedule of many parts', 'if (text.length > MAX_LENGTH) return', 'if (text.length < 0) return'],
  ]),
  ...faults('src/lib/zone.ts', [['a time zone with a long name', 'name.length > MAX_NAME || ', '']]),
];

const api = [
  ...faults('src/api/conditions.ts', [
    ['a status that is never written', 'v.message.length > MAX_MESSAGE ?', 'v.message.length < 0 ?'],
  ]),
  ...faults('src/api/agent-task.ts', [
    ['a key of many slashes', 'return key.slice(0, end);', "return key.replace(/\\/+$/, '');"],
    ['a folder without a name', "while (key[end - 1] === '/') end--;", ''],
  ]),
  ...faults('src/api/defaults.ts', [
    ['a volume without bounds that has room for nothing', 'return Number(MAX_QUOTA);', 'return 1;'],
  ]),
];

export const hostile: readonly Mutant[] = [...pieces, ...lib, ...api];
