import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { auditBuckets } from '../support/bucket-audit.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fleetProperty } from './fleet-property.js';
import { type Edit, FleetStore } from './fleet-store.js';

/** The property of fleet.property.spec.ts must fail for a store that is broken on purpose. If one passes here, it proves nothing. */
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  const fleet = await FleetStore.open(database.url);
  await auditBuckets(database);
  await fleet.close();
}, 60_000);
afterAll(() => database.drop());

interface Tooth {
  readonly what: string;
  readonly edit: Edit;
  /** What it says. */
  readonly finds: RegExp;
}

const BROKEN: readonly Tooth[] = [
  {
    what: 'a settle that does not mind the fence',
    edit: {
      from: 'j.claim_seq = s.seq and j.status is not distinct from 1 and j.bucket is not distinct from',
      to: 'j.claim_seq >= s.seq and j.status is not distinct from 1 and gen_random_uuid() is distinct from',
    },
    finds: /"lost": Array/,
  },
  {
    what: 'a rescue that charges what only waited in a buffer',
    edit: { from: 'coalesce(h.begun_at, m.begun_at) as', to: 'coalesce(h.begun_at, m.begun_at, now()) as' },
    finds: /\+ +"crashes": 1/,
  },
  {
    what: 'a rescue that knows no start marks',
    edit: { from: 'coalesce(h.begun_at, m.begun_at) as', to: 'h.begun_at as' },
    finds: /- +"crashes": 1/,
  },
  {
    what: 'an operator who sends a bucket past completing',
    edit: { from: "set status = 'completing'", to: "set status = 'ready_to_drain'" },
    finds: /a bucket moves as the table says/,
  },
  {
    what: 'a rescue that leaves the epoch of a lost bucket',
    edit: { from: "set status = 'lost', epoch = b.epoch + 1,", to: "set status = 'lost'," },
    finds: /a bucket moves as the table says/,
  },
  {
    what: 'a claim that does not mind the pause of its lane',
    edit: {
      from: "where bucket_row.status = 'active' and not bucket_row.paused",
      to: "where bucket_row.status = 'active'",
    },
    finds: /was claimed, although it could not be/,
  },
];

describe('the property of a fleet finds out', () => {
  for (const { what, edit, finds } of BROKEN) {
    it(
      what,
      async () => {
        const fleet = await FleetStore.open(database.url, [edit]);
        try {
          const settings = { numRuns: 200, endOnFailure: true };
          const { errorInstance } = await fc.check(fleetProperty(fleet, database), settings);
          expect(fleet.used).toContain(edit);
          expect(String(errorInstance)).toMatch(finds);
        } finally {
          await fleet.close();
        }
      },
      300_000,
    );
  }
});
