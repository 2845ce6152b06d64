/** Logs are JSON lines on standard output. */
import { type Logger, pino } from 'pino';

export type { Logger };

/** Synchronous on purpose: nothing is lost when the process exits, and no worker thread has to be bundled. */
export const createLogger = (level: string): Logger =>
  pino({
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  });
