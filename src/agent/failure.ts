/** How a task of an agent fails: a reason of a closed list, and a message that says what is wrong and what to do. */
import type { FailureReason } from '../domain/agent-result.ts';

export class AgentFailure extends Error {
  readonly reason: FailureReason;

  /** Users read the message in a status: no secret, and no dump of what a library threw. */
  constructor(reason: FailureReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentFailure';
    this.reason = reason;
  }
}

export const misconfigured = (message: string): AgentFailure => new AgentFailure('Misconfigured', message);
