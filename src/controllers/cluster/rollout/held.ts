/**
 * What a member that does not serve gets while the version of an edit is held back. Until it serves, the checks before a change of
 * the minor fail: without the rest of the edit, which may be what it lacks, neither would ever happen.
 */
import type { Template } from '../../../api/template.ts';
import { unknownFlags } from '../../../domain/etcd-flags.ts';
import { minorOf } from '../../../domain/version-path.ts';
import { present } from '../../../lib/present.ts';
import type { MemberView, Observed } from '../observed.ts';
import { isServing } from './failure.ts';
import { dueFields, previousTemplate, templateOf } from './state.ts';
import { lackedFields } from './template.ts';
import { versionHeldBy } from './version-change.ts';

/** What is known to work with the data of this member. */
function working(o: Observed, m: MemberView): Template {
  const { spec } = m.object;
  const known = [
    ...o.members.filter((each) => isServing(o, each)).map(({ object }) => object.spec),
    previousTemplate(o),
  ];
  return known.find((template) => template && minorOf(template.version) === minorOf(spec.version)) ?? spec;
}

/** The edit without its version, and without what is written for that version. */
export function heldTemplate(o: Observed, m: MemberView): Template {
  const { version: _version, image: _image, extraArgs, ...rest } = templateOf(o, m);
  const { version, image, extraArgs: args } = working(o, m);
  const isKnown = unknownFlags(version, extraArgs ?? []).length === 0;
  return { ...rest, version, ...present({ image, extraArgs: isKnown ? extraArgs : args }) };
}

/** The fields of it that its Pod does not have; `undefined`: no version is held back, or the member serves. */
export const heldFields = (o: Observed, m: MemberView): readonly (keyof Template)[] | undefined =>
  isServing(o, m) || dueFields(o, m).length === 0 || !versionHeldBy(o, m)
    ? undefined
    : lackedFields(m, heldTemplate(o, m));
