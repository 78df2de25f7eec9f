import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEFAULTS } from '../../lib/ratchet.defaults.js';
import { migrationSql } from '../../lib/store/postgres/migrations/migration-sql.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { readPage, snippetsOf } from './markdown.js';

const PAGE = 'docs/jobs/retention.md';
const snippets = snippetsOf(PAGE, 'sql');

describe(PAGE, () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase();
    await database.query(migrationSql('ratchet'));
    await database.query(`insert into ratchet.job_history (id, name, version, lane, priority, outcome, scheduled_at, created_at,
        claim_seq, ended_at, executions, failures, crashes, result)
      values (gen_random_uuid(), 'invoice.send', 1, 'default', 2, 'succeeded', now(), now(), 1, now(), 1, 0, 0, '"sent"')`);
  });
  afterAll(() => database.drop());

  it.each(snippets.map(({ line, code }) => [line, code] as const))(
    'the SQL of line %i answers',
    async (_line, code) => {
      expect((await database.query(code)).length).toBeGreaterThan(0);
    },
  );

  it('has its SQL', () => expect(snippets.length).toBe(3));

  it('tells history by all its days', async () => {
    const [, byDay] = snippets;
    const [{ days } = { days: 0 }] = await database.query<{ days: number }>(
      `select count(*)::int as days from pg_inherits where inhparent = 'ratchet.job_history'::regclass`,
    );
    expect(await database.query(byDay?.code ?? '')).toHaveLength(days);
  });

  it('names the defaults', () => {
    const page = readPage(PAGE);
    const { history, historyBytes, deadLetter, executions } = DEFAULTS.retention;
    expect(page).toContain(`\`retention.history\`, ${history.replace('d', ' days')}`);
    expect(page).toContain(`\`retention.historyBytes\`, ${historyBytes / 1e9} GB`);
    expect(page).toContain(`\`retention.deadLetter\`, ${deadLetter.replace('d', ' days')}`);
    expect(page).toContain(`\`retention.executions\`, ${executions.replace('d', ' days')}`);
  });
});
