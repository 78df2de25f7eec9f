import { DEFAULT_BACKOFF } from './jobs/backoff.js';

/**
 * What an option is when it is not given, each said once: `resolveOptions` fills in from here, the TSDoc of the options
 * and docs/configuration.md are checked against it.
 */
export const DEFAULTS = Object.freeze({
  worker: true,
  schema: 'ratchet',
  migrations: 'auto',
  concurrency: 10,
  maxRetries: 3,
  backoff: DEFAULT_BACKOFF,
  priorityBoost: '15m',
  pollInterval: '2s',
  maxCrashRedeliveries: 3,
  drainTimeout: '25s',
  idempotencyExpiry: '24h',
  limits: Object.freeze({ payloadBytes: 1_000_000, resultBytes: 256_000, errorBytes: 16_000 }),
  retention: Object.freeze({
    history: '7d',
    executions: '30d',
    deadLetter: '30d',
  }),
  pool: Object.freeze({ exchange: 1, client: 4, clientWithoutWorker: 2 }),
  startup: Object.freeze({ onDatabaseDown: 'wait', timeout: '60s' }),
  embedded: Object.freeze({ dataDir: '.ratchet/postgres' }),
} as const);
