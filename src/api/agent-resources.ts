/** CPU and memory of the container of an agent. */
import type { Static } from 'typebox';
import Type from 'typebox';
import { optionalObject } from './optional.ts';
import { quantity } from './text.ts';

const amounts = () =>
  Type.Optional(Type.Object({ cpu: Type.Optional(quantity({})), memory: Type.Optional(quantity({})) }));

export const agentResources = (description: string) =>
  optionalObject(description, { requests: amounts(), limits: amounts() });

export type AgentResources = Static<ReturnType<typeof agentResources>>;
