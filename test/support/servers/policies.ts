/** The admission policies of the chart, at an API server without an operator. */
import { parseAllDocuments } from 'yaml';
import { chartDir } from '../../../tools/paths.ts';
import { run } from '../../../tools/process.ts';
import type { Api } from './api-server.ts';

export interface Policy {
  readonly kind: string;
  readonly spec: {
    readonly failurePolicy: string;
    readonly matchConstraints: { readonly resourceRules: readonly { readonly resources: readonly string[] }[] };
    readonly validations: readonly {
      readonly expression: string;
      readonly message?: string;
      readonly messageExpression?: string;
    }[];
  };
}

/** Renders them with these values, creates them with their bindings, and returns the policies. */
export async function installPolicies(api: Api, helm: string, values: readonly string[]): Promise<readonly Policy[]> {
  const shown = ['policies', 'tenancy', 'warnings'].flatMap((name) => ['--show-only', `templates/${name}.yaml`]);
  const sets = values.flatMap((value) => ['--set', value]);
  const args = ['template', 'etcd-operator', chartDir, '--namespace', 'etcd-system', ...shown, ...sets];
  const { stdout } = await run(helm, args);
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Policy);
  for (const body of objects) {
    const plural = `${body.kind.toLowerCase().replace(/y$/, 'ie')}s`;
    await api.admin.transport.json(`/apis/admissionregistration.k8s.io/v1/${plural}`, { method: 'POST', body });
  }
  return objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicy');
}
