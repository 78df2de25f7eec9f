import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { captureLogs, createPostgresNode, type EngineNodeOptions } from '../support/engine-node.js';

export type Node = Awaited<ReturnType<typeof createPostgresNode>>;

export interface EngineFixture {
  readonly database: TestDatabase;
  readonly logs: { readonly level: string; readonly line: string }[];
  /** Closed after the test. */
  node(options: EngineNodeOptions, url?: string): Promise<Node>;
}

/** A database for the file, emptied after each test, and nodes on it. */
export function engineFixture(): EngineFixture {
  let database: TestDatabase;
  const nodes: Node[] = [];
  const logs = captureLogs();
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.runtime.close()));
    await database.query(
      'truncate ratchet.job, ratchet.job_history, ratchet.dead_letter, ratchet.execution, ratchet.bucket, ratchet.node, ratchet.notice, ' +
        'ratchet.schedule, ratchet.occurrence, ratchet.lease',
    );
    logs.length = 0;
  });
  afterAll(() => database.drop());
  return {
    get database() {
      return database;
    },
    logs,
    async node(options, url) {
      const made = await createPostgresNode(url ?? database.url, options);
      nodes.push(made);
      return made;
    },
  };
}
