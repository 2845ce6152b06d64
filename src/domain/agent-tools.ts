/** The agent and its runtime in a container of the etcd image, which has neither Node nor a libc. */
import { AGENT_RUNTIME } from './agent-runtime.ts';
import { MOUNTS } from './agent-task.ts';

/** In the mounted volume; renamed to this when complete, so that a partial copy is never run. */
export const TOOLS_FOLDER = `${MOUNTS.tools}/agent`;
export const TOOLS = {
  loader: 'loader',
  libraries: 'lib',
  node: 'node',
  agent: 'agent.mjs',
  certificates: 'ca-certificates.crt',
} as const;

/** The image has no dynamic loader for the kernel to find: the loader is run as the program, with the paths as arguments. */
export const toolsCommand = (): readonly string[] => [
  `${TOOLS_FOLDER}/${TOOLS.loader}`,
  '--library-path',
  `${TOOLS_FOLDER}/${TOOLS.libraries}`,
  `${TOOLS_FOLDER}/${TOOLS.node}`,
  `${TOOLS_FOLDER}/${TOOLS.agent}`,
];

/** With the CA certificates of the operator's image. */
export const TOOLS_ENVIRONMENT = [
  ...AGENT_RUNTIME,
  { name: 'SSL_CERT_FILE', value: `${TOOLS_FOLDER}/${TOOLS.certificates}` },
] as const;
