const FIRST_MS = 100;
/** Below the five seconds in which work resumes after the database is back, with time left to connect. */
const MOST_MS = 3_500;

/** How long to wait after the n-th failure in a row (from 1), with jitter, so that nodes do not come back in step. */
export function faultDelayMs(failures: number, random: () => number = Math.random): number {
  const full = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return full * (0.5 + random() / 2);
}
