/** Milliseconds, or a number with a unit: `500`, `'30s'`, `'15m'`, `'24h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A hundred years: what is longer is a mistake, and would leave the range of a PostgreSQL timestamp. */
export const MAX_DURATION_MS = 100 * 365 * 86_400_000;

/**
 * Milliseconds of a duration, or `undefined` when the value is none (not finite, negative, misspelt, over 100 years).
 * The caller knows what the value is called and throws.
 */
export function durationMs(value: unknown): number | undefined {
  let ms: number;
  if (typeof value === 'number') {
    ms = value;
  } else if (typeof value === 'string') {
    const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value);
    if (!match) return undefined;
    ms = Number(match[1]) * (UNITS[match[2] ?? ''] ?? Number.NaN);
  } else {
    return undefined;
  }
  return Number.isFinite(ms) && ms >= 0 && ms <= MAX_DURATION_MS ? Math.round(ms) : undefined;
}
