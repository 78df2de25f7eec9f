import { InvalidResultOptionError } from '../../errors/result-errors.js';
import { reading } from '../../errors/reading.js';
import { unknownKey } from '../../errors/wrong-value.js';
import { isAbortSignal } from '../../jobs/abort-signal.js';
import { MAX_DURATION_MS, durationMs } from '../../jobs/duration.js';

/** The options of `result()`, checked. */
export interface ResultSettings {
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
}

const NONE: ResultSettings = { timeoutMs: undefined, signal: undefined };

/** @throws InvalidResultOptionError */
export function resultSettings(options: unknown): ResultSettings {
  if (options === undefined) return NONE;
  return reading(
    () => settingsOf(options),
    (allowed, cause) => new InvalidResultOptionError('options', undefined, allowed, { cause }),
  );
}

function settingsOf(options: unknown): ResultSettings {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new InvalidResultOptionError('options', options, '{ timeout, signal }, or nothing');
  }
  const { timeout, signal, ...rest } = options as Readonly<Record<string, unknown>>;
  for (const [key, value] of Object.entries(rest)) {
    if (value !== undefined)
      throw new InvalidResultOptionError(key, value, unknownKey(key, ['timeout', 'signal']));
  }
  return { timeoutMs: timeoutOf(timeout), signal: signalOf(signal) };
}

function timeoutOf(timeout: unknown): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = durationMs(timeout);
  if (ms !== undefined && ms > 0) return ms;
  throw new InvalidResultOptionError(
    'timeout',
    timeout,
    `milliseconds or '30s', from 1 ms to ${String(MAX_DURATION_MS / 86_400_000)} days; to wait without a limit leave it out`,
  );
}

function signalOf(signal: unknown): AbortSignal | undefined {
  if (signal === undefined || isAbortSignal(signal)) return signal;
  throw new InvalidResultOptionError('signal', signal, 'an AbortSignal');
}
