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
  lane: Object.freeze({ reserved: 0, buckets: 1, bufferSize: 0 }),
  maxRetries: 3,
  backoff: DEFAULT_BACKOFF,
  priorityBoost: '15m',
  poll: Object.freeze({
    burst: '500ms',
    min: '2s',
    max: '10s',
    deepIdle: '60s',
    deepIdleAfter: '5m',
  }),
  heartbeat: Object.freeze({ interval: '10s', grace: '30s', stallLimit: '5m' }),
  fallbackAfter: '150s',
  maxCrashRedeliveries: 3,
  drainTimeout: '25s',
  idempotencyExpiry: '24h',
  intake: Object.freeze({ bufferedJobs: 10_000, bufferedBytes: 16_000_000 }),
  limits: Object.freeze({ payloadBytes: 1_000_000, resultBytes: 256_000, errorBytes: 16_000 }),
  retention: Object.freeze({
    history: '7d',
    historyBytes: 20_000_000_000,
    executions: '30d',
    deadLetter: '30d',
  }),
  pool: Object.freeze({ exchange: 1, client: 4, clientWithoutWorker: 2 }),
  enhancers: Object.freeze({ interceptors: false, guards: false }),
  adoptCron: false,
  recurring: Object.freeze({ timeZone: 'UTC', convergence: '5m' }),
  startup: Object.freeze({ onDatabaseDown: 'wait', timeout: '60s' }),
  embedded: Object.freeze({ dataDir: '.ratchet/postgres' }),
} as const);
