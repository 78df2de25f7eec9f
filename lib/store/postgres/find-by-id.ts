const DAY_MS = 86_400_000;
/** As a bound, it rules nothing out. */
export const EVER = '-infinity';

/**
 * Looks a job up, first without the partitions that its id rules out: a job cannot have ended before it was made, and a
 * UUIDv7 says when that was (with a day of margin). But it says so by the clock of the node that made it, and a wrong clock
 * must not hide a job: what is not found that way is looked for everywhere.
 */
export async function findById<T>(
  id: string,
  offsetMs: number,
  look: (notEndedBefore: string) => Promise<T>,
  found: (answer: T) => boolean,
): Promise<T> {
  const bound = notEndedBefore(id, offsetMs);
  const answer = await look(bound);
  return bound === EVER || found(answer) ? answer : look(EVER);
}

/** When a UUIDv7 was made, in milliseconds, by the clock of who made it; `undefined` for another id. */
export function idTime(id: string): number | undefined {
  return id[14] === '7' ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined;
}

function notEndedBefore(id: string, offsetMs: number): string {
  const madeAt = idTime(id);
  if (madeAt === undefined) return EVER;
  const bound = madeAt - DAY_MS + Math.min(0, offsetMs);
  // An id that is no true UUIDv7 may claim a far future.
  return bound > Date.now() + DAY_MS ? EVER : new Date(bound).toISOString();
}
