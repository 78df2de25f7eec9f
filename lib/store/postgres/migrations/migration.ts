/** One step of the schema. */
export interface Migration {
  readonly version: number;
  readonly name: string;
  /** The oldest schema version that a node may know and still work with the schema after this step. */
  readonly oldestNode: number;
  /** `$schema$` stands for the quoted schema name. */
  readonly sql: string;
}
