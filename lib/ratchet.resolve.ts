import { type EntityManager } from 'typeorm';
import { type EnhancerSettings } from './discovery/handler-enhancers.js';
import { type EngineSettings } from './engine/engine-settings.js';
import { InvalidOptionError, type OptionProblem } from './errors/boot-errors.js';
import { describeError } from './errors/describe-error.js';
import { reading } from './errors/reading.js';
import { InvalidTimeZoneError } from './errors/recurring-errors.js';
import { showValue } from './errors/show-value.js';
import { resolveBackoff } from './jobs/backoff.js';
import { JOB_LIMITS } from './jobs/limits.js';
import { type DatabaseChoice, readDatabase } from './ratchet.database-choice.js';
import { DEFAULTS } from './ratchet.defaults.js';
import { readLanes } from './ratchet.lanes.js';
import { OptionReader, isPlainObject } from './ratchet.option-reader.js';
import { type RatchetOptions } from './ratchet.options.js';
import { zoneName } from './recurring/time/zone-name.js';

/** The options with every default filled in: milliseconds, nothing undefined that has a default. */
export interface ResolvedOptions {
  readonly engine: EngineSettings;
  readonly database: DatabaseChoice;
  /** Undefined: the node makes up its own. */
  readonly nodeId: string | undefined;
  readonly schema: string;
  readonly migrations: 'auto' | 'check' | 'off';
  readonly idempotencyExpiryMs: number;
  /** What buffered enqueues may keep in memory. */
  readonly intake: { readonly jobs: number; readonly bytes: number };
  readonly pool: { readonly exchange: number; readonly client: number };
  readonly startup: { readonly onDatabaseDown: 'wait' | 'fail'; readonly timeoutMs: number };
  /** Which of the app's own stand before handlers. */
  readonly enhancers: EnhancerSettings;
  /** Of schedules that do not say one. */
  readonly recurringTimeZone: string;
  /** `@Cron` methods are recurring schedules. */
  readonly adoptCron: boolean;
  readonly transaction: (() => EntityManager | undefined) | undefined;
}

/** Given beside the options because the providers must be known before a factory of options has run. */
const EXTRAS = new Set([
  'isGlobal',
  'imports',
  'extraProviders',
  'coordinator',
  'jobStore',
  'lockStore',
  'scheduleStore',
  'bucketStore',
  'startupCoordinator',
  'nodeIdentity',
  'retryPolicy',
  'clock',
]);

/**
 * Checks the options and fills in the defaults: the one place where that happens, for `forRoot` and `forRootAsync` alike.
 *
 * @throws InvalidOptionError with everything that is wrong.
 */
export function resolveOptions(raw: RatchetOptions): ResolvedOptions {
  requireOptions(raw);
  const problems: OptionProblem[] = [];
  const reader = new OptionReader(raw, problems);
  const resolved = readingOptions(() => {
    const all = read(reader);
    reader.finish((key) =>
      EXTRAS.has(key)
        ? 'a factory of options comes too late for it; give it beside useFactory, useClass or useExisting'
        : undefined,
    );
    return all;
  });
  if (problems.length > 0) throw new InvalidOptionError(problems);
  return resolved;
}

/** @throws InvalidOptionError when there are none. What was given instead is not shown: it may be a URL with a password. */
export function requireOptions(raw: unknown): asserts raw is Record<string, unknown> {
  if (isPlainObject(raw)) return;
  throw new InvalidOptionError([{ option: 'options', problem: 'there are none; give at least a database' }]);
}

/** @throws InvalidOptionError when nothing makes the options. */
export function requireFactory(given: unknown): void {
  const { useFactory, useClass, useExisting } = isPlainObject(given) ? given : {};
  if (typeof useFactory === 'function' || typeof useClass === 'function' || (useExisting ?? null) !== null)
    return;
  const problem = 'nothing makes them; give forRootAsync one of useFactory, useClass, useExisting';
  throw new InvalidOptionError([{ option: 'options', problem }]);
}

/** @throws InvalidOptionError when a getter or a proxy throws. */
export function readingOptions<T>(read: () => T): T {
  return reading(
    read,
    (allowed, cause) =>
      new InvalidOptionError([{ option: 'options', problem: `allowed: ${allowed}` }], { cause }),
  );
}

function read(reader: OptionReader): ResolvedOptions {
  const worker = readWorker(reader);
  const recurring = readRecurring(reader.section('recurring'));
  return {
    engine: { ...readEngine(reader, worker), recurring: { convergenceMs: recurring.convergenceMs } },
    database: readDatabase(reader),
    nodeId: reader.text(
      'nodeId',
      (value) => value.length <= 64 && /\S/u.test(value) && /^[^\p{Cc}\p{Cs}]+$/u.test(value),
      'a text of 1 to 64 characters without control characters',
    ),
    schema:
      reader.text(
        'schema',
        (value) => /^[a-z_][a-z0-9_]{0,47}$/.test(value) && !/^(pg_.*|information_schema)$/.test(value),
        'a PostgreSQL schema name of at most 48 of a-z, 0-9 and _, that does not begin with a digit or pg_',
      ) ?? DEFAULTS.schema,
    migrations: reader.oneOf('migrations', ['auto', 'check', 'off'], DEFAULTS.migrations),
    idempotencyExpiryMs: reader.duration('idempotencyExpiry', DEFAULTS.idempotencyExpiry, '1s'),
    intake: readIntake(reader.section('intake')),
    pool: readPool(reader.section('pool'), worker !== false),
    startup: readStartup(reader.section('startup')),
    enhancers: readEnhancers(reader.section('enhancers')),
    recurringTimeZone: recurring.timeZone,
    adoptCron: reader.flag('adoptCron', DEFAULTS.adoptCron),
    transaction: readTransaction(reader),
  };
}

function readWorker(reader: OptionReader): EngineSettings['worker'] {
  const value = reader.peek('worker');
  if (value === undefined) return DEFAULTS.worker;
  if (typeof value === 'boolean' || value === 'drain') return value;
  reader.wrong('worker', "true, 'drain' or false");
  return DEFAULTS.worker;
}

function readEngine(
  reader: OptionReader,
  worker: EngineSettings['worker'],
): Omit<EngineSettings, 'recurring'> {
  const concurrency = reader.whole('concurrency', DEFAULTS.concurrency, 1, 10_000);
  return {
    worker,
    concurrency,
    lanes: readLanes(reader, concurrency),
    maxRetries: reader.whole('maxRetries', DEFAULTS.maxRetries, 0, JOB_LIMITS.maxRetries),
    backoff: reader.resolved('backoff', DEFAULTS.backoff, resolveBackoff),
    priorityBoostMs: readBoost(reader),
    poll: readPoll(reader.section('poll')),
    heartbeat: readHeartbeat(reader.section('heartbeat')),
    fallbackAfterMs: reader.duration('fallbackAfter', DEFAULTS.fallbackAfter, '1s', '1d'),
    maxCrashRedeliveries: reader.whole('maxCrashRedeliveries', DEFAULTS.maxCrashRedeliveries, 0, 1_000),
    drainTimeoutMs: reader.duration('drainTimeout', DEFAULTS.drainTimeout, 0, '1d'),
    limits: readLimits(reader.section('limits')),
    retention: readRetention(reader.section('retention')),
  };
}

function readPoll(poll: OptionReader): EngineSettings['poll'] {
  const read = {
    burstMs: poll.duration('burst', DEFAULTS.poll.burst, '20ms', '1h'),
    minMs: poll.duration('min', DEFAULTS.poll.min, '20ms', '1h'),
    maxMs: poll.duration('max', DEFAULTS.poll.max, '20ms', '1h'),
    deepIdleMs: poll.duration('deepIdle', DEFAULTS.poll.deepIdle, '20ms', '1h'),
    deepIdleAfterMs: poll.duration('deepIdleAfter', DEFAULTS.poll.deepIdleAfter, '1s', '1d'),
  };
  const steps = [
    ['burst', read.burstMs],
    ['min', read.minMs],
    ['max', read.maxMs],
    ['deepIdle', read.deepIdleMs],
  ] as const;
  for (const [index, [longer, ms]] of steps.entries()) {
    const [shorter, shorterMs] = steps[index - 1] ?? [longer, 0];
    if (ms < shorterMs)
      poll.refuse(longer, `${ms} ms are less than poll.${shorter} (${shorterMs} ms); allowed: at least that`);
  }
  poll.finish();
  return read;
}

function readHeartbeat(heartbeat: OptionReader): EngineSettings['heartbeat'] {
  const read = {
    baseMs: heartbeat.duration('interval', DEFAULTS.heartbeat.interval, '100ms', '10m'),
    graceMs: heartbeat.duration('grace', DEFAULTS.heartbeat.grace, '1s', '1h'),
    stallMs: heartbeat.duration('stallLimit', DEFAULTS.heartbeat.stallLimit, '1s', '1d'),
  };
  heartbeat.finish();
  return read;
}

/** `0` is off; a boost of some milliseconds would only be a slow way to say "oldest first". */
function readBoost(reader: OptionReader): number {
  const ms = reader.duration('priorityBoost', DEFAULTS.priorityBoost);
  if (ms > 0 && ms < 1_000) reader.wrong('priorityBoost', '0 (off), or at least 1s');
  return ms;
}

function readLimits(limits: OptionReader): EngineSettings['limits'] {
  const read = {
    payloadBytes: limits.whole('payloadBytes', DEFAULTS.limits.payloadBytes, 100, 100_000_000),
    // One exchange carries at most 1 MB of results.
    resultBytes: limits.whole('resultBytes', DEFAULTS.limits.resultBytes, 100, 1_000_000),
    errorBytes: limits.whole('errorBytes', DEFAULTS.limits.errorBytes, 100, 1_000_000),
  };
  limits.finish();
  return read;
}

function readRetention(retention: OptionReader): EngineSettings['retention'] {
  const read = {
    historyMs: retention.duration('history', DEFAULTS.retention.history, '1h'),
    historyBytes: retention.whole(
      'historyBytes',
      DEFAULTS.retention.historyBytes,
      1_000_000,
      Number.MAX_SAFE_INTEGER,
    ),
    executionsMs: retention.duration('executions', DEFAULTS.retention.executions, '1h'),
    deadLetterMs: retention.duration('deadLetter', DEFAULTS.retention.deadLetter, '1h'),
  };
  retention.finish();
  return read;
}

function readIntake(intake: OptionReader): ResolvedOptions['intake'] {
  const read = {
    jobs: intake.whole('bufferedJobs', DEFAULTS.intake.bufferedJobs, 1, 1_000_000),
    bytes: intake.whole('bufferedBytes', DEFAULTS.intake.bufferedBytes, 1_000, 1_000_000_000),
  };
  intake.finish();
  return read;
}

function readPool(pool: OptionReader, worker: boolean): ResolvedOptions['pool'] {
  const read = {
    exchange: pool.whole('exchange', DEFAULTS.pool.exchange, 1, 50),
    client: pool.whole('client', worker ? DEFAULTS.pool.client : DEFAULTS.pool.clientWithoutWorker, 1, 200),
  };
  pool.finish();
  return read;
}

function readStartup(startup: OptionReader): ResolvedOptions['startup'] {
  const read = {
    onDatabaseDown: startup.oneOf('onDatabaseDown', ['wait', 'fail'], DEFAULTS.startup.onDatabaseDown),
    timeoutMs: startup.duration('timeout', DEFAULTS.startup.timeout, 0, '1d'),
  };
  startup.finish();
  return read;
}

function readEnhancers(enhancers: OptionReader): EnhancerSettings {
  const read = {
    interceptors: enhancers.flag('interceptors', DEFAULTS.enhancers.interceptors),
    guards: enhancers.flag('guards', DEFAULTS.enhancers.guards),
  };
  enhancers.finish();
  return read;
}

function readRecurring(recurring: OptionReader): {
  readonly timeZone: string;
  readonly convergenceMs: number;
} {
  const convergenceMs = recurring.duration('convergence', DEFAULTS.recurring.convergence, 0, '30d');
  const timeZone = readTimeZone(recurring);
  recurring.finish();
  return { timeZone, convergenceMs };
}

function readTimeZone(recurring: OptionReader): string {
  const zone = recurring.peek('timeZone') ?? DEFAULTS.recurring.timeZone;
  try {
    return zoneName(zone, 'recurring');
  } catch (error) {
    const problem = error instanceof InvalidTimeZoneError ? error.problem : describeError(error).message;
    recurring.refuse('timeZone', `${showValue(zone)} ${problem}`);
    return DEFAULTS.recurring.timeZone;
  }
}

function readTransaction(reader: OptionReader): ResolvedOptions['transaction'] {
  const value = reader.peek('transaction');
  if (value === undefined) return undefined;
  if (typeof value !== 'function') {
    reader.wrong('transaction', 'a function that returns the EntityManager of the transaction under way');
  }
  return value as ResolvedOptions['transaction'];
}
