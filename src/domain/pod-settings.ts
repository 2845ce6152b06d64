/** What the administrator decides about every Pod and Job that the operator creates. Applied at the client: no builder can forget it. */
import { USER } from '../api/security.ts';
import type { Container, Job, PodSecurityContext, PodSpec } from '../gen/kube.ts';
import { STORE_ENDPOINTS_VARIABLE, TASK_VARIABLE } from './agent-task.ts';

export interface PodSettings {
  /** Instead of the default user, group and fsGroup; `none`: an admission plugin chooses them, as on OpenShift. */
  readonly user: number | 'none';
  /** Hosts that agents may connect to, also where a Secret names the host; empty: all. */
  readonly storeEndpoints: readonly string[];
}

export const isDefault = ({ user, storeEndpoints }: PodSettings): boolean =>
  user === USER && storeEndpoints.length === 0;

const IDS = ['runAsUser', 'runAsGroup', 'fsGroup'];

function security({ securityContext = {} }: PodSpec, user: PodSettings['user']): PodSecurityContext {
  const isDefaultId = ([field, value]: readonly [string, unknown]): boolean => IDS.includes(field) && value === USER;
  const fields = Object.entries(securityContext);
  return Object.fromEntries(
    user === 'none'
      ? fields.filter((field) => !isDefaultId(field))
      : fields.map((field) => (isDefaultId(field) ? [field[0], user] : field)),
  );
}

const isAgent = ({ env = [] }: Container): boolean => env.some(({ name }) => name === TASK_VARIABLE);

/** The task of an agent is in its environment, and so is the list: a tenant writes neither. */
const container = (each: Container, endpoints: readonly string[]): Container =>
  endpoints.length === 0 || !isAgent(each)
    ? each
    : { ...each, env: [...(each.env ?? []), { name: STORE_ENDPOINTS_VARIABLE, value: JSON.stringify(endpoints) }] };

const podSpec = (spec: PodSpec, { user, storeEndpoints }: PodSettings): PodSpec => ({
  ...spec,
  securityContext: security(spec, user),
  containers: spec.containers.map((each) => container(each, storeEndpoints)),
  ...(spec.initContainers && { initContainers: spec.initContainers.map((each) => container(each, storeEndpoints)) }),
});

/** The object as it is created; anything but a Pod or a Job is left as it is. */
export function withPodSettings<T extends { readonly kind?: string }>(object: T, settings: PodSettings): T {
  if (object.kind === 'Pod') {
    const { spec } = object as { readonly spec?: PodSpec };
    return spec ? { ...object, spec: podSpec(spec, settings) } : object;
  }
  const { spec } = object.kind === 'Job' ? (object as { readonly spec?: Job['spec'] }) : {};
  if (!spec?.template.spec) return object;
  const template = { ...spec.template, spec: podSpec(spec.template.spec, settings) };
  return { ...object, spec: { ...spec, template } };
}
