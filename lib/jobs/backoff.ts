import { unknownKey } from '../errors/wrong-value.js';
import { type Duration, durationMs } from './duration.js';

/** How long a failed job waits before its next execution. What is left out has its default, whatever the module says. */
export interface Backoff {
  /** @defaultValue `'exponential'` */
  type?: 'none' | 'fixed' | 'exponential' | undefined;
  /** The wait after the first failure; `exponential` doubles it after each further one. @defaultValue `'1s'` */
  delay?: Duration | undefined;
  /** The longest wait, jitter included. @defaultValue `'1h'` */
  maxDelay?: Duration | undefined;
  /** Part of the wait that is random, 0 to 1: 0.2 spreads it by up to 20 % either way. @defaultValue `0.2` */
  jitter?: number | undefined;
}

/** A backoff with every default filled in, as rows carry it (milliseconds). */
export interface ResolvedBackoff {
  type: 'none' | 'fixed' | 'exponential';
  delayMs: number;
  maxDelayMs: number;
  jitter: number;
}

/** What {@link resolveBackoff} fills in. */
export const DEFAULT_BACKOFF: Readonly<ResolvedBackoff> = Object.freeze({
  type: 'exponential',
  delayMs: 1_000,
  maxDelayMs: 3_600_000,
  jitter: 0.2,
});

const BACKOFF_TYPES: readonly unknown[] = ['none', 'fixed', 'exponential'];
const BACKOFF_KEYS: readonly string[] = ['type', 'delay', 'maxDelay', 'jitter'];

/** What is wrong with one setting: the caller knows what the whole is called and throws its own error. */
export interface SettingFault {
  readonly key: string;
  readonly value: unknown;
  readonly allowed: string;
}

/** Fills in the defaults, or says what is wrong. Takes `unknown`, because options arrive from JavaScript and from files too. */
export function resolveBackoff(value: unknown): ResolvedBackoff | SettingFault {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { key: 'backoff', value, allowed: 'an object { type, delay, maxDelay, jitter }' };
  }
  const given = value as Record<string, unknown>;
  const unknown = Object.keys(given).find((key) => !BACKOFF_KEYS.includes(key));
  if (unknown !== undefined) {
    return { key: `backoff.${unknown}`, value: given[unknown], allowed: unknownKey(unknown, BACKOFF_KEYS) };
  }
  const type = given['type'] ?? DEFAULT_BACKOFF.type;
  if (!BACKOFF_TYPES.includes(type)) {
    return { key: 'backoff.type', value: type, allowed: "'none', 'fixed' or 'exponential'" };
  }
  const duration = (key: string, fallback: number): number | undefined =>
    given[key] === undefined ? fallback : durationMs(given[key]);
  const delayMs = duration('delay', DEFAULT_BACKOFF.delayMs);
  if (delayMs === undefined) return { key: 'backoff.delay', value: given['delay'], allowed: DURATION_WORDS };
  const maxDelayMs = duration('maxDelay', Math.max(DEFAULT_BACKOFF.maxDelayMs, delayMs));
  if (maxDelayMs === undefined)
    return { key: 'backoff.maxDelay', value: given['maxDelay'], allowed: DURATION_WORDS };
  if (maxDelayMs < delayMs) {
    return {
      key: 'backoff.maxDelay',
      value: given['maxDelay'],
      allowed: 'a duration not below backoff.delay',
    };
  }
  const jitter = given['jitter'] ?? DEFAULT_BACKOFF.jitter;
  if (typeof jitter !== 'number' || !(jitter >= 0 && jitter <= 1)) {
    return { key: 'backoff.jitter', value: jitter, allowed: 'a number from 0 to 1' };
  }
  return { type: type as ResolvedBackoff['type'], delayMs, maxDelayMs, jitter };
}

/** Whether a resolver found something wrong. */
export function isSettingFault<T extends object>(value: T | SettingFault): value is SettingFault {
  return 'allowed' in value;
}

/** How errors word what a duration may be. */
export const DURATION_WORDS =
  "milliseconds or a text like '500ms', '30s', '15m', '24h', '7d', at most 100 years";

/**
 * Milliseconds until the next execution.
 *
 * @param failures - failures so far, this one included: 1 or more.
 * @param random - 0 (included) to 1 (not included).
 */
export function nextBackoffMs(backoff: ResolvedBackoff, failures: number, random = Math.random()): number {
  if (backoff.type === 'none') return 0;
  const doublings = backoff.type === 'fixed' ? 0 : Math.max(0, failures - 1);
  // 2 ** 1024 is Infinity, and 0 * Infinity would be NaN.
  const wait = Math.min(backoff.delayMs * 2 ** Math.min(doublings, 64), backoff.maxDelayMs);
  const spread = wait * backoff.jitter * (2 * random - 1);
  return Math.round(Math.min(Math.max(0, wait + spread), backoff.maxDelayMs));
}
