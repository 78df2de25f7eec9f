/**
 * What we use of TypeORM, 0.3 and 1.x, by shape: two copies of the package in one process must both work, so nothing here
 * asks `instanceof`.
 */

/** A QueryRunner: one connection, perhaps inside a transaction. */
export interface QueryRunnerShape {
  readonly isTransactionActive: boolean;
  readonly isReleased: boolean;
  /** 1.x. */
  readonly dataSource?: DataSourceShape;
  /** 0.3. */
  readonly connection?: DataSourceShape;
  query(
    text: string,
    parameters: unknown[],
    structured: true,
  ): Promise<{ records?: Record<string, unknown>[] }>;
}

export interface DataSourceShape {
  /** Emptied and filled again by `initialize()`. */
  readonly subscribers: SubscriberShape[];
  readonly options: { readonly type: string };
  /** Knows the database's name when it was given within a URL, too. */
  readonly driver?: { readonly database?: unknown };
}

/**
 * The events of an EntitySubscriber that we hear. TypeORM awaits promises: a rejection, or a throw, after the commit would
 * reject a committed transaction.
 */
export interface SubscriberShape {
  beforeTransactionStart?(event: { readonly queryRunner: object }): Promise<void> | undefined;
  beforeTransactionCommit?(event: { readonly queryRunner: object }): Promise<void> | undefined;
  beforeTransactionRollback?(event: { readonly queryRunner: object }): void;
  afterTransactionCommit?(event: { readonly queryRunner: object }): void;
  afterTransactionRollback?(event: { readonly queryRunner: object }): void;
  beforeQuery?(event: { readonly queryRunner: object; readonly query: unknown }): void;
}

export function isQueryRunner(value: unknown): value is QueryRunnerShape {
  return (
    typeof value === 'object' &&
    value !== null &&
    'isTransactionActive' in value &&
    typeof value.isTransactionActive === 'boolean' &&
    'query' in value &&
    typeof value.query === 'function'
  );
}

/** An EntityManager; its `queryRunner` is undefined outside a transaction. */
export function isEntityManager(
  value: unknown,
): value is { readonly queryRunner: QueryRunnerShape | undefined } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'transaction' in value &&
    typeof value.transaction === 'function' &&
    'getRepository' in value &&
    !('subscribers' in value) &&
    (!('queryRunner' in value) || value.queryRunner === undefined || isQueryRunner(value.queryRunner))
  );
}

export function dataSourceOf(runner: QueryRunnerShape): DataSourceShape | undefined {
  return runner.dataSource ?? runner.connection;
}
