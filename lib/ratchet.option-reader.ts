import { type OptionProblem } from './errors/boot-errors.js';
import { nearest } from './errors/nearest.js';
import { wrongValue } from './errors/wrong-value.js';
import { showValue } from './errors/show-value.js';
import { DURATION_WORDS, type SettingFault, isSettingFault } from './jobs/backoff.js';
import { type Duration, durationMs } from './jobs/duration.js';

/**
 * Reads one level of the options, key by key, and notes what is wrong instead of throwing, so that a user mends
 * everything in one go. A key that nobody asked for when `finish` is called is unknown.
 */
export class OptionReader {
  readonly #asked = new Set<string>();

  constructor(
    private readonly given: Readonly<Record<string, unknown>>,
    private readonly problems: OptionProblem[],
    private readonly path = '',
  ) {}

  has(key: string): boolean {
    return this.peek(key) !== undefined;
  }

  peek(key: string): unknown {
    this.#asked.add(key);
    return Object.hasOwn(this.given, key) ? this.given[key] : undefined;
  }

  keys(): string[] {
    return Object.keys(this.given);
  }

  refuse(key: string, problem: string): void {
    this.problems.push({ option: this.path + key, problem });
  }

  wrong(key: string, allowed: string): void {
    this.refuse(key, `${showValue(this.peek(key))} is wrong; allowed: ${allowed}`);
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.peek(key);
    if (value === undefined) return fallback;
    if (typeof value === 'boolean') return value;
    this.wrong(key, 'true or false');
    return fallback;
  }

  whole<F extends number | undefined>(key: string, fallback: F, min: number, max: number): number | F {
    const value = this.peek(key);
    if (value === undefined) return fallback;
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
    this.wrong(key, `a whole number from ${min} to ${max}`);
    return fallback;
  }

  oneOf<T extends string>(key: string, allowed: readonly T[], fallback: T): T {
    const value = this.peek(key);
    if (value === undefined) return fallback;
    const found = allowed.find((one) => one === value);
    if (found === undefined) this.wrong(key, allowed.map((one) => `'${one}'`).join(', '));
    return found ?? fallback;
  }

  text(key: string, fits: (value: string) => boolean, allowed: string): string | undefined {
    const value = this.peek(key);
    if (value === undefined) return undefined;
    if (typeof value === 'string' && fits(value)) return value;
    this.wrong(key, allowed);
    return undefined;
  }

  /** Milliseconds. */
  duration(key: string, fallback: Duration, min: Duration = 0, max?: Duration): number {
    const [least, most] = [durationMs(min) ?? 0, max === undefined ? Infinity : durationMs(max)];
    const value = this.peek(key);
    const ms = durationMs(value === undefined ? fallback : value);
    if (ms !== undefined && ms >= least && ms <= (most ?? Infinity)) return ms;
    const bounds = [least > 0 ? `at least ${min}` : '', max === undefined ? '' : `at most ${max}`];
    this.wrong(key, [DURATION_WORDS, ...bounds].filter(Boolean).join(', '));
    return durationMs(fallback) ?? 0;
  }

  /** A value that another folder knows how to resolve. */
  resolved<T extends object>(key: string, fallback: T, resolve: (value: unknown) => T | SettingFault): T {
    const value = this.peek(key);
    if (value === undefined) return fallback;
    const result = resolve(value);
    if (!isSettingFault(result)) return result;
    this.refuse(result.key, wrongValue(result.value, result.allowed));
    return fallback;
  }

  /** The options below a key; none when it is not given. */
  section(key: string): OptionReader {
    const value = this.peek(key);
    if (isPlainObject(value)) return new OptionReader(value, this.problems, `${this.path}${key}.`);
    if (value !== undefined) this.wrong(key, 'an object');
    return new OptionReader({}, this.problems, `${this.path}${key}.`);
  }

  /** Refuses what nobody asked for. `elsewhere` says of some keys why they are not among the options. */
  finish(elsewhere: (key: string) => string | undefined = () => undefined): void {
    for (const key of this.keys()) {
      if (this.#asked.has(key) || this.given[key] === undefined) continue;
      const near = nearest(key, [...this.#asked]);
      const mend = near ? `did you mean ${near}?` : `allowed: ${[...this.#asked].sort().join(', ')}`;
      this.refuse(key, elsewhere(key) ?? `there is no such option; ${mend}`);
    }
  }
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
