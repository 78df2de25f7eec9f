import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { migrationSql } from '../../lib/store/postgres/migrations/migration-sql.js';
import { BUCKET_ENDS, BUCKET_TRANSITIONS } from '../../lib/store/bucket-transitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { readPage, snippetsOf } from './markdown.js';

const PAGE = 'docs/buckets.md';

describe('docs/buckets.md', () => {
  it('draws exactly the steps of the table, and who may make them', () => {
    const drawn = [...readPage(PAGE).matchAll(/^ {2}(\w+) --> (\w+|\[\*\]): (.+)$/gm)].flatMap(
      ([, from, to, actors]) => actors!.split(', ').map((by) => `${from} to ${to} by ${by}`),
    );
    const steps = BUCKET_TRANSITIONS.map(({ from, to, by }) => `${from} to ${to} by ${by}`);
    const ends = BUCKET_ENDS.map(({ from, by }) => `${from} to [*] by ${by}`);
    expect(drawn.toSorted()).toEqual([...steps, ...ends].toSorted());
  });

  it('explains every status and everybody', () => {
    const page = readPage(PAGE);
    for (const status of new Set(BUCKET_TRANSITIONS.flatMap(({ from, to }) => [from, to]))) {
      expect(page).toContain(`| \`${status}\` `);
    }
    for (const actor of new Set(BUCKET_TRANSITIONS.map(({ by }) => by))) {
      expect(page).toMatch(new RegExp(`\\| (the|a) ${actor} `));
    }
  });

  describe('its SQL', () => {
    let database: TestDatabase;
    beforeAll(async () => {
      database = await createTestDatabase();
      await database.query(migrationSql('ratchet'));
      await database.query(
        `insert into ratchet.bucket (id, node_id, node_epoch, lane, status) values (gen_random_uuid(), 'a', 1, 'mail', 'lost')`,
      );
    });
    afterAll(() => database.drop());

    it('runs', async () => {
      const [snippet, ...more] = snippetsOf(PAGE, 'sql');
      expect(more).toEqual([]);
      expect(await database.query(snippet!.code)).toMatchObject([{ node_id: 'a', status: 'lost' }]);
    });
  });
});
