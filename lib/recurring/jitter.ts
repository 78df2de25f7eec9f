/**
 * A delay from 0 to `mostMs`, both included, that is always the same for the same occurrence: whoever fires it, and however
 * often, comes to the same due time.
 *
 * @param salt - the schedule, and whatever else shall tell two delays apart.
 */
export function jitterOf(salt: string, at: Date, mostMs: number): number {
  if (mostMs <= 0) return 0;
  return Math.floor((hash(`${salt}@${at.getTime()}`) / 2 ** 32) * (mostMs + 1));
}

/** FNV-1a, and the last steps of MurmurHash3, without which neighbouring times would have neighbouring delays. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    h = Math.imul(h ^ text.charCodeAt(index), 0x01000193);
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
