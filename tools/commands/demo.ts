/** `./dev demo`: from nothing to a key that is written to and read from an etcd cluster of the operator, on a real Kubernetes on this machine. */
import { join } from 'node:path';
import { type LocalCluster, up } from '../../local/cluster.ts';
import { whyNoNodes } from '../../local/host.ts';
import { ETCD_VERSIONS } from '../../local/images.ts';
import { installOperator, OPERATOR_NAMESPACE, operatorImage } from '../../local/operator.ts';
import { cacheDir } from '../paths.ts';
import { buildScript } from '../plugin/build.ts';
import { handOver } from '../process.ts';
import { say, step, UsageFailure } from '../terminal.ts';

const NAMESPACE = 'demo';
const CLUSTER = 'example';
const KIND = 'etcdclusters.etcd-operator.cozystack.io';
const KEY = 'greeting';

const manifest = {
  apiVersion: 'etcd-operator.cozystack.io/v1alpha2',
  kind: 'EtcdCluster',
  metadata: { name: CLUSTER, namespace: NAMESPACE },
  spec: { replicas: 1, version: ETCD_VERSIONS['3.6'], storage: { size: '1Gi' } },
};

const ON_YOUR_CLUSTER = `
On a Kubernetes that you have already, install the operator with Helm instead:
  ./dev image                       builds the image and says how to push it to your registry
  helm install etcd-operator charts/etcd-operator \\
    --namespace ${OPERATOR_NAMESPACE} --create-namespace \\
    --set image.repository=REGISTRY/etcd-operator`;

const NEXT = `
That was a real Kubernetes with three nodes on this machine, and it is still running. What to try next:
  ./dev kubectl get nodes,pods -A                              everything that runs
  ./dev kubectl etcd status -A                                 all etcd clusters, with the kubectl plugin
  ./dev kubectl -n ${NAMESPACE} describe ${KIND.split('.')[0]} ${CLUSTER}             the cluster's state and history
  ./dev kubectl -n ${NAMESPACE} delete pod -l app.kubernetes.io/name=etcd   kill etcd and watch it come back with its data
  ./dev kubectl -n ${OPERATOR_NAMESPACE} logs deploy/etcd-operator   what the operator did, and why
  ./dev down                                                   stop it all and remove every trace`;

/** Through the client Service, as an application would. */
async function writeAndRead(cluster: LocalCluster, value: string): Promise<string> {
  const pods = await cluster.kubectl([
    '-n',
    NAMESPACE,
    'get',
    'pods',
    '-l',
    'app.kubernetes.io/name=etcd',
    '-o',
    'name',
  ]);
  const endpoint = `--endpoints=http://${CLUSTER}-client.${NAMESPACE}.svc:2379`;
  const etcdctl = ['-n', NAMESPACE, 'exec', pods.split('\n')[0] ?? '', '--', 'etcdctl', endpoint];
  await cluster.kubectl([...etcdctl, 'put', KEY, value]);
  return (await cluster.kubectl([...etcdctl, 'get', KEY, '--print-value-only'])).trim();
}

export async function demo(args: readonly string[]): Promise<number> {
  if (args.length > 0) throw new UsageFailure('./dev demo takes no arguments.');
  const message = whyNoNodes();
  if (message) {
    say(`./dev: ${message}`);
    say(ON_YOUR_CLUSTER);
    return 1;
  }
  say('A real Kubernetes with three nodes on this machine:');
  const cluster = await up('demo', { etcd: ['3.6'] });
  say('etcd under the operator:');
  const image = await operatorImage();
  await step('install the operator with its Helm chart', () => installOperator(cluster, image));
  await step(`create EtcdCluster ${NAMESPACE}/${CLUSTER} and wait until it is available`, async () => {
    await cluster.apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }, manifest]);
    const available = ['wait', '--for=condition=Available', '--timeout=120s', `${KIND}/${CLUSTER}`];
    await cluster.kubectl(['-n', NAMESPACE, ...available]);
  });
  const written = `hello, it is ${new Date().toISOString()}`;
  const read = await step('write a key and read it back', () => writeAndRead(cluster, written));
  say(`\n  wrote ${KEY} = ${written}\n  read  ${KEY} = ${read}\n`);
  if (read !== written) {
    say('./dev: the value that was read is not the one that was written; please report this bug.');
    return 1;
  }
  say(
    await cluster.kubectl(['-n', NAMESPACE, 'get', `${KIND},etcdmembers.etcd-operator.cozystack.io,pods,pvc,services`]),
  );
  const script = await step('build the kubectl plugin', () => buildScript(join(cacheDir, 'plugin')));
  say(`\nkubectl etcd status ${CLUSTER} -n ${NAMESPACE}\n`);
  const status = ['status', CLUSTER, '-n', NAMESPACE, '--kubeconfig', cluster.kubeconfig];
  await handOver(process.execPath, [script, ...status]);
  say(NEXT);
  return 0;
}
