import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { migrationSql } from '../../lib/store/postgres/migrations/migration-sql.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { snippetsOf } from './markdown.js';

/** Roles belong to the server, not to the test's database. */
const ROLE = `app_worker_${process.pid}_${Date.now()}`;
const BUCKET = '01890000-0000-7000-8000-00000000000b';
const RUNNING = '01890000-0000-7000-8000-000000000001';

/** What a reader of the page would fill in. */
const VARIABLES: Record<string, () => string> = {
  ":'id'": () => `'${RUNNING}'`,
  app_worker: () => ROLE,
  ':"partition"': () => `"job_history_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}"`,
};

function fillIn(sql: string): string {
  return Object.entries(VARIABLES).reduce((text, [name, value]) => text.replaceAll(name, value()), sql);
}

const snippets = snippetsOf('docs/operations.md', 'sql');

describe('SQL of docs/operations.md', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query(migrationSql('ratchet'));
    await database.query(`
      insert into ratchet.node (id, epoch, host, pid, version, lanes, handlers, state)
        values ('web-1', nextval('ratchet.node_epoch'), 'web', 1, '0.1.0', '{default}', '{invoice.send}', 'running');
      insert into ratchet.bucket (id, node_id, node_epoch, lane, status) values ('${BUCKET}', 'web-1', 1, 'default', 'active');
      insert into ratchet.job (id, name, version, lane, priority, status, scheduled_at, created_at, payload, claim_seq, bucket, begun_at, executions)
        values ('${RUNNING}', 'invoice.send', 1, 'default', 2, 1, now(), now(), '{}', 1, '${BUCKET}', now(), 1);
      insert into ratchet.job (id, name, version, lane, priority, scheduled_at, created_at, payload)
        values ('01890000-0000-7000-8000-000000000003', 'invoice.send', 1, 'mial', 2, now(), now(), '{}');
      insert into ratchet.dead_letter (id, name, version, lane, priority, scheduled_at, created_at, payload, claim_seq, ended_at, executions, failures, crashes, error)
        values ('01890000-0000-7000-8000-000000000002', 'invoice.send', 1, 'default', 2, now(), now(), '{}', 1, now(), 1, 1, 0, 'boom');
    `);
  });

  afterAll(async () => {
    await database.query(`drop owned by ${ROLE}`);
    await database.query(`drop role ${ROLE}`);
    await database.drop();
  });

  it('is there', () => expect(snippets.length).toBeGreaterThanOrEqual(12));

  it.each(snippets.map((snippet) => [`${snippet.page}:${snippet.line}`, snippet] as const))(
    '%s runs',
    async (_title, { code }) => {
      const statements = fillIn(code)
        .split(/;\n/)
        .filter((statement) => statement.trim() !== '');
      for (const statement of statements) {
        const rows = await database.query(statement);
        // Nobody pins a snapshot here; every other question has an answer in the rows above.
        if (/^\s*select/.test(statement) && !statement.includes('backend_xmin'))
          expect(rows.length).toBeGreaterThan(0);
      }
    },
  );

  it('gives a role that owns nothing what it needs to settle', async () => {
    const client = await database.connect();
    await client.query(`set role ${ROLE}`);
    const { rows } = await client.query<{ ahead: number }>('select ratchet.ensure_partitions(15) as ahead');
    expect(rows[0]?.ahead).toBe(15);
    await client.query(
      `insert into ratchet.execution (job_id, claim_seq, number, outcome, ended_at) values ('${RUNNING}', 1, 1, 'retried', now())`,
    );
    await expect(client.query('drop table ratchet.execution')).rejects.toMatchObject({ code: '42501' });
  });
});
