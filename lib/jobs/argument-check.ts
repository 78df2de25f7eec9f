import { nearest } from '../errors/nearest.js';
import { unknownKey } from '../errors/wrong-value.js';
import { DURATION_WORDS, isSettingFault, type ResolvedBackoff, resolveBackoff } from './backoff.js';
import { durationMs, MAX_DURATION_MS } from './duration.js';
import { countFault, JOB_LIMITS, textFault } from './limits.js';

export type Given = Readonly<Record<string, unknown>>;

/** Makes the error of a call for what is wrong at a path. */
export type Refusal = (path: string, value: unknown, allowed: string) => Error;

/** Longest list of alternatives: beyond it a condition by tag, name or time says the same in less. */
const MAX_VALUES = 10_000;

/** One check each for the shapes that the arguments of one call have. */
export class ArgumentCheck {
  /**
   * @param isWhole - `undefined` for a key is refused too: it is a variable that nobody has set, and the call does more
   *   without it than was meant. Otherwise it passes, as if the key were left out.
   */
  constructor(
    private readonly refusal: Refusal,
    readonly isWhole = false,
  ) {}

  refuse(path: string, value: unknown, allowed: string): never {
    throw this.refusal(path, value, allowed);
  }

  /** @param prefix - of the paths of its keys. */
  object(path: string, value: unknown, keys: readonly string[], prefix = `${path}.`): Given {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return this.refuse(path, value, `an object with ${keys.join(', ')}`);
    }
    for (const [name, setting] of Object.entries(value)) {
      if (setting === undefined && !this.isWhole) continue;
      if (!keys.includes(name)) this.refuse(prefix + name, setting, unknownKey(name, keys));
      if (setting === undefined) {
        this.refuse(prefix + name, setting, 'a value; to set no such condition leave the key out');
      }
    }
    return value as Given;
  }

  optional<T>(path: string, value: unknown, read: (path: string, value: unknown) => T): T | undefined {
    return value === undefined ? undefined : read(path, value);
  }

  /** One value, or a list of them: each as `one` reads it, without doubles. */
  list<T>(path: string, value: unknown, one: (path: string, value: unknown) => T): readonly T[] | undefined {
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return [one(path, value)];
    // An empty list means nothing or everything, depending on whom one asks.
    if (value.length === 0) this.refuse(path, value, 'at least one value; leave the key out for any');
    if (value.length > MAX_VALUES) this.refuse(path, value, `at most ${MAX_VALUES} values in one list`);
    // By `from`, which also visits holes.
    return [...new Set(Array.from(value as unknown[], (each, index) => one(`${path}[${index}]`, each)))];
  }

  oneOf<T extends string>(path: string, value: unknown, allowed: readonly T[]): T {
    const found = allowed.find((each) => each === value);
    if (found !== undefined) return found;
    const near = typeof value === 'string' ? nearest(value, allowed) : undefined;
    return this.refuse(path, value, allowed.join(', ') + (near ? `; did you mean ${near}?` : ''));
  }

  text(path: string, value: unknown, maxLength: number): string {
    const fault = textFault(value, maxLength);
    return fault === undefined ? (value as string) : this.refuse(path, value, fault);
  }

  count(path: string, value: unknown, min: number, max: number): number {
    const fault = countFault(value, min, max);
    return fault === undefined ? (value as number) : this.refuse(path, value, fault);
  }

  /** Unlike {@link ArgumentCheck.text}, `undefined` is none. */
  optionalText(path: string, value: unknown, maxLength: number): string | undefined {
    return value === undefined ? undefined : this.text(path, value, maxLength);
  }

  /** In milliseconds, as dates too: a Date itself is the caller's, and can be changed. */
  duration(path: string, value: unknown): number {
    return durationMs(value) ?? this.refuse(path, value, DURATION_WORDS);
  }

  /** A duration that is not 0. */
  span(path: string, value: unknown): number {
    const ms = this.duration(path, value);
    return ms > 0 ? ms : this.refuse(path, value, `${DURATION_WORDS}, above 0`);
  }

  /** Its faults say their own path, which begins with `backoff`. */
  backoff(value: unknown): ResolvedBackoff {
    const backoff = resolveBackoff(value);
    return isSettingFault(backoff) ? this.refuse(backoff.key, backoff.value, backoff.allowed) : backoff;
  }

  /** Those of a job, without doubles. */
  tags(path: string, value: unknown): readonly string[] {
    const allowed = `at most ${JOB_LIMITS.tags} texts of 1 to ${JOB_LIMITS.tagLength} characters`;
    if (!Array.isArray(value) || value.length > JOB_LIMITS.tags) return this.refuse(path, value, allowed);
    // By `from`, which also visits holes.
    const tags = Array.from(value as unknown[], (tag, index) =>
      this.text(`${path}[${index}]`, tag ?? null, JOB_LIMITS.tagLength),
    );
    return [...new Set(tags)];
  }

  date(path: string, value: unknown, maxMs: number, allowed: string): number {
    // By its tag: a Date may come from another realm.
    const ms =
      Object.prototype.toString.call(value) === '[object Date]' ? (value as Date).getTime() : Number.NaN;
    return ms >= 0 && ms <= maxMs ? ms : this.refuse(path, value, allowed);
  }

  /** When a job shall be due. The database compares it; this is only about what it can write. */
  runAt(path: string, value: unknown): Date {
    const allowed = 'a valid Date, from 1970 to 100 years ahead';
    return new Date(this.date(path, value, Date.now() + MAX_DURATION_MS, allowed));
  }
}
