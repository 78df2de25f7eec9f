/** True for rows whose name and version a node can run; a null (no such handler) is no truth. */
export const runnable = (row: string, names: string, versions: string): string =>
  `${row}.version <= (${versions}::int[])[array_position(${names}::text[], ${row}.name)]`;
