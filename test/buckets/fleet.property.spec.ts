import { afterAll, beforeAll, it } from '@jest/globals';
import fc from 'fast-check';
import { auditBuckets } from '../support/bucket-audit.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fleetProperty, propertySettings } from './fleet-property.js';
import { FleetStore } from './fleet-store.js';

/**
 * Nodes come, leave, crash, freeze and write after their death, people drain and pause: a job is always in exactly one place, a bucket is
 * never owned twice and moves only as the table says, a crash is charged to what had begun and to nothing else, and in the end all is done.
 */
let database: TestDatabase;
let fleet: FleetStore;

beforeAll(async () => {
  database = await createTestDatabase();
  fleet = await FleetStore.open(database.url);
  await auditBuckets(database);
}, 60_000);
afterAll(async () => {
  await fleet.close();
  await database.drop();
});

it('a fleet keeps its promises whatever happens to it', async () => {
  await fc.assert(fleetProperty(fleet, database), propertySettings());
}, 600_000);
