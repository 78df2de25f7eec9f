import { type SqlClient } from '../../sql-client.js';

/** How many connections the server allows in all: shown at boot beside what a node opens. */
export async function maxConnections(client: SqlClient): Promise<number | undefined> {
  const [row] = await client.query({ text: `select current_setting('max_connections') as max` });
  return row ? Number(row['max']) : undefined;
}
