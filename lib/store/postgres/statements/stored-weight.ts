/** What the server compressed is taken for so many times its stored size: to see its true one it would have to unpack it. */
const COMPRESSION = 10;

/** How many bytes a value of a column adds to an answer, about: by its stored size, which is known without fetching it. */
export const storedWeight = (column: string): string =>
  `coalesce(pg_column_size(${column}) * case when pg_column_compression(${column}) is null then 1 else ${COMPRESSION} end, 0)`;
