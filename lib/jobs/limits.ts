/** Bounds of the texts and numbers that a job carries. Beyond them is a mistake, and an index row has room for no more. */
export const JOB_LIMITS = Object.freeze({
  nameLength: 200,
  laneLength: 100,
  keyLength: 200,
  tags: 20,
  tagLength: 100,
  metadataBytes: 16_000,
  progressBytes: 16_000,
  /** More failures than a row's integer can count usefully. */
  maxRetries: 1_000_000,
  version: 2_147_483_647,
});

/** Whether PostgreSQL takes a text as it is: it refuses NUL, and surrogates without their other half. */
export function isStorableText(text: string): boolean {
  return !text.includes('\0') && !/\p{Cs}/u.test(text);
}

/** What is wrong with a name, key, lane or tag; `undefined` when nothing is. */
export function textFault(value: unknown, maxLength: number): string | undefined {
  const allowed = `a text of 1 to ${maxLength} characters without NUL or broken surrogates`;
  if (typeof value !== 'string' || value.length === 0 || value.length > maxLength) return allowed;
  return isStorableText(value) ? undefined : allowed;
}

/** What is wrong with a count; `undefined` when nothing is. */
export function countFault(value: unknown, min: number, max: number): string | undefined {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max
    ? undefined
    : `an integer from ${min} to ${max}`;
}
