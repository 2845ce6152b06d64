/** How edits of an EtcdCluster reach its running members. */
import Type from 'typebox';
import { optionalEnum, optionalInt32, optionalList, optionalObject, optionalText } from './optional.ts';

const maintenanceWindow = Type.Object({
  schedule: Type.String({
    minLength: 1,
    maxLength: 256,
    description: 'When the window opens: a cron expression with five fields.',
  }),
  duration: Type.String({
    pattern: '^([0-9]{1,5}[hms])+$',
    maxLength: 32,
    description: 'How long the window is open, such as 2h.',
  }),
  timeZone: optionalText('Time zone of the schedule, such as Europe/Berlin. Absent: UTC.', { maxLength: 64 }),
});

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
    maintenanceWindows: optionalList(maintenanceWindow, 16),
  },
);
