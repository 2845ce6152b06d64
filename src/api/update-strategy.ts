/** How edits of an EtcdCluster reach its running members. */
import { optionalEnum, optionalInt32, optionalObject } from './optional.ts';

export const updateStrategy = optionalObject(
  'How edits that need another Pod reach running members: version, image, options, resources, scheduling and the like.',
  {
    type: optionalEnum(
      'Absent: RollingUpdate, one member after the other, the leader last. OnDelete: the operator restarts no member for an edit; a Pod that is deleted comes back with the edit.',
      ['RollingUpdate', 'OnDelete'],
    ),
    minReadySeconds: optionalInt32(
      'How long all members must have been ready before the next one is restarted. Absent: 0, a moment.',
      { minimum: 0, maximum: 86_400 },
    ),
  },
);
