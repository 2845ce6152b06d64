/** Where an agent's parts are in a container of the etcd image, which has neither Node nor a libc. */
import { AGENT_RUNTIME } from './agent-runtime.ts';
import { MOUNTS } from './agent-task.ts';

/** Below the mounted volume: it gets this name when it is whole. */
export const TOOLS_FOLDER = `${MOUNTS.tools}/agent`;
export const TOOLS = {
  loader: 'loader',
  libraries: 'lib',
  node: 'node',
  agent: 'agent.mjs',
  certificates: 'ca-certificates.crt',
} as const;

/** The kernel knows no loader in this image: it is started as the program, and told what to load. */
export const toolsCommand = (): readonly string[] => [
  `${TOOLS_FOLDER}/${TOOLS.loader}`,
  '--library-path',
  `${TOOLS_FOLDER}/${TOOLS.libraries}`,
  `${TOOLS_FOLDER}/${TOOLS.node}`,
  `${TOOLS_FOLDER}/${TOOLS.agent}`,
];

/** With what the operator's image has for itself. */
export const TOOLS_ENVIRONMENT = [
  ...AGENT_RUNTIME,
  { name: 'SSL_CERT_FILE', value: `${TOOLS_FOLDER}/${TOOLS.certificates}` },
] as const;
