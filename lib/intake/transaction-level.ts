/**
 * A transaction or a savepoint, as far as it was heard of: what was written in it is undone with it, or with one that it was
 * part of. A released savepoint goes on as a part of what is around it.
 */
export class TransactionLevel {
  #rolledBack = false;

  constructor(private readonly outer: TransactionLevel | undefined) {}

  get isUndone(): boolean {
    return this.#rolledBack || (this.outer?.isUndone ?? false);
  }

  rollBack(): void {
    this.#rolledBack = true;
  }

  /** Where the connection is when this one has ended. */
  end(): TransactionLevel | undefined {
    return this.outer;
  }
}
