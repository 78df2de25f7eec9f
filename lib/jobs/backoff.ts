import { type Duration } from './duration.js';

/** How long a failed job waits before its next execution. */
export interface Backoff {
  /** @defaultValue `'exponential'` */
  type?: 'none' | 'fixed' | 'exponential';
  /** The wait after the first failure. @defaultValue `'1s'` */
  delay?: Duration;
  /** The longest wait. @defaultValue `'1h'` */
  maxDelay?: Duration;
  /** Part of the wait that is random, 0 to 1: 0.2 spreads it by up to 20 % either way. @defaultValue `0.2` */
  jitter?: number;
}

/** A backoff with every default filled in, as rows carry it (milliseconds). */
export interface ResolvedBackoff {
  type: 'none' | 'fixed' | 'exponential';
  delayMs: number;
  maxDelayMs: number;
  jitter: number;
}
