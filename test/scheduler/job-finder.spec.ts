import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { cursorBehind, idOfCursor } from '../../lib/scheduler/page-cursor.js';
import { type JobView } from '../../lib/store/job-store.js';
import { listScheduler } from './support.js';

/** A store of so many jobs, newest first, of which it gives at most so many at a time. */
function storeOf(count: number, most = Infinity) {
  const ids = Array.from({ length: count }, () => uuidv7()).reverse();
  const limits: number[] = [];
  const { scheduler } = listScheduler({
    store: {
      find: async (_, { limit, before }) => {
        limits.push(limit);
        const left = ids.filter((id) => before === undefined || id < before);
        const jobs = left.slice(0, Math.min(limit, most)).map((id) => ({ id, priority: 3 }) as JobView);
        return { jobs, more: left.length > jobs.length };
      },
    },
  });
  return { scheduler, ids, limits };
}

describe('pages', () => {
  it('have every job once, in order, whatever their size', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 25 }),
        fc.integer({ min: 1, max: 8 }),
        async (count, limit) => {
          const { scheduler, ids } = storeOf(count);
          const seen: string[] = [];
          let cursor: string | undefined;
          let pages = 0;
          do {
            const page = await scheduler.find({}, { limit, cursor });
            seen.push(...page.jobs.map(({ id }) => id));
            cursor = page.cursor;
            pages += 1;
          } while (cursor !== undefined);
          expect(seen).toEqual(ids);
          // No empty last page.
          expect(pages).toBe(Math.max(1, Math.ceil(count / limit)));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('speak of jobs in the words of users', async () => {
    const { jobs } = await storeOf(1).scheduler.find();
    expect(jobs).toMatchObject([{ priority: 'high' }]);
  });
});

describe('findAll', () => {
  it('fetches page by page, and no more than it is asked for', async () => {
    const { scheduler, ids, limits } = storeOf(250);
    const seen: string[] = [];
    for await (const { id } of scheduler.findAll()) {
      seen.push(id);
      if (seen.length === 120) break;
    }
    expect(seen).toEqual(ids.slice(0, 120));
    expect(limits).toEqual([100, 100]);
    for await (const { id } of scheduler.findAll()) seen.push(id);
    expect(seen.slice(120)).toEqual(ids);
  });

  it('goes on behind pages that are short because their jobs are large', async () => {
    const { scheduler, ids } = storeOf(7, 3);
    const seen: string[] = [];
    for await (const { id } of scheduler.findAll()) seen.push(id);
    expect(seen).toEqual(ids);
  });
});

describe('a cursor', () => {
  it('is text for a URL, and comes back as the id', () => {
    fc.assert(
      fc.property(fc.uuid(), (id) => {
        const cursor = cursorBehind(id);
        expect(encodeURIComponent(cursor)).toBe(cursor);
        expect(idOfCursor(cursor)).toBe(id);
      }),
    );
  });

  it('is nothing else', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const id = idOfCursor(text);
        if (id !== undefined) expect(cursorBehind(id)).toBe(text);
      }),
    );
    const cursor = cursorBehind(uuidv7());
    for (const broken of [cursor.slice(1), `${cursor}A`, ` ${cursor}`, `${cursor}=`]) {
      expect(idOfCursor(broken)).toBeUndefined();
    }
  });
});
