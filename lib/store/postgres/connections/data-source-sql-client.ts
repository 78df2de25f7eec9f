import { type DataSource, type QueryRunner } from 'typeorm';
import { type StoreTransaction } from '../../job-store.js';
import { type Row, type SqlClient, type Statement } from '../../sql-client.js';

/** The application's own TypeORM DataSource (0.3 and 1.x). Never closes it. */
export class DataSourceSqlClient implements SqlClient {
  constructor(private readonly dataSource: DataSource) {}

  async query(statement: Statement, parameters: readonly unknown[] = []): Promise<Row[]> {
    const runner = this.dataSource.createQueryRunner();
    try {
      return await run(runner, statement.text, parameters);
    } finally {
      await runner.release();
    }
  }

  async transaction<T>(work: (transaction: StoreTransaction) => Promise<T>): Promise<T> {
    const runner = this.dataSource.createQueryRunner();
    try {
      await runner.startTransaction();
      try {
        const result = await work({ query: (text, parameters) => run(runner, text, parameters) });
        await runner.commitTransaction();
        return result;
      } catch (error) {
        // The first error says what happened; a rollback that fails too means that the connection is gone.
        if (runner.isTransactionActive) await runner.rollbackTransaction().catch(() => undefined);
        throw error;
      }
    } finally {
      await runner.release();
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** With the structured result `records` are rows for every command; the plain one differs between INSERT and UPDATE. */
async function run(runner: QueryRunner, text: string, parameters: readonly unknown[]): Promise<Row[]> {
  const result = await runner.query(text, parameters.length === 0 ? undefined : [...parameters], true);
  return (result.records as Row[] | undefined) ?? [];
}
