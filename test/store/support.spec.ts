import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { oneNode } from '../../lib/store/postgres/migrations/0001-one-node.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

it('loads the first schema', async () => {
  await database.query('create schema ratchet');
  await database.query(oneNode.sql.replaceAll('$schema$', '"ratchet"'));
  expect(await database.query('select * from ratchet.jobs')).toEqual([]);
});
