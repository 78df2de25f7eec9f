const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const DAY_MS = 86_400_000;

export function isUuid(id: string): boolean {
  return UUID.test(id);
}

/**
 * A job cannot have ended before it was made, and a UUIDv7 says when that was: old partitions need not be read. A day of
 * margin, as the id carries a node's clock and the partitions the database's.
 */
export function notEndedBefore(id: string, offsetMs: number): string {
  if (id[14] !== '7') return '-infinity';
  const madeAt = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
  const bound = madeAt - DAY_MS + Math.min(0, offsetMs);
  // An id that is no true UUIDv7 may claim a far future.
  return bound > Date.now() + DAY_MS ? '-infinity' : new Date(bound).toISOString();
}
