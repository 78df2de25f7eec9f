/**
 * The store's time in SQL: the database's clock plus the offset of {@link JobStore.travel}, a parameter in milliseconds.
 * Not `now()`: in a long transaction of the caller that would be its beginning.
 */
export const storeClock = (parameter: string): string =>
  `(clock_timestamp() + ${parameter}::float8 * interval '1 millisecond')`;
