import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type JobDefinition } from '../../lib/jobs/job-definition.js';
import { decodePayload, encodePayload, encodeResult } from '../../lib/jobs/payload-codec.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const Any: JobDefinition = defineJob<unknown>('any.job');
const anything = fc.anything({
  withBigInt: true,
  withBoxedValues: true,
  withDate: true,
  withMap: true,
  withNullPrototype: true,
  withObjectString: true,
  withSet: true,
  withSparseArray: true,
  withTypedArray: true,
  stringUnit: 'binary',
} as fc.ObjectConstraints);
const json = fc.jsonValue({ stringUnit: 'grapheme' });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** As the store writes and reads: `jsonb` in, text out. */
async function stored(text: string): Promise<unknown> {
  const rows = await database.query<{ text: string }>('select $1::text::jsonb::text as text', [text]);
  return JSON.parse(rows[0]!.text);
}

describe('the codec against PostgreSQL', () => {
  it('returns every payload that it accepts equal, and refuses the others by name', async () => {
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(fc.oneof(anything, json), async (value) => {
        let text: string;
        try {
          text = await encodePayload(Any, value, 1_000_000);
        } catch (error) {
          expect(['PAYLOAD_NOT_JSON', 'PAYLOAD_TOO_LARGE']).toContain((error as { code?: string }).code);
          return;
        }
        accepted += 1;
        const back = await decodePayload(Any, await stored(text), 1);
        // By their own JSON: that is where -0 and undefined properties are allowed to differ.
        expect(back).toEqual(value === undefined ? null : JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 400 },
    );
    expect(accepted).toBeGreaterThan(100);
  });

  it('keeps some form of every result', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(anything, fc.string({ unit: 'binary' })), async (value) => {
        const result = encodeResult(value, 2_000);
        if (value === undefined) return;
        expect(Buffer.byteLength(result!.text)).toBeLessThanOrEqual(2_000);
        await stored(result!.text);
      }),
      { numRuns: 400 },
    );
  });

  it('accepts a payload as deep as it allows', async () => {
    let value: unknown = 'x';
    for (let level = 0; level < 1_000; level++) value = level % 2 ? [value] : { a: value };
    expect(await stored(await encodePayload(Any, value, 1_000_000))).toEqual(value);
  });
});
