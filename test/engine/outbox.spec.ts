import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { MOST_SENT_BYTES, Outbox, SKIPS_BEFORE_WAITING } from '../../lib/engine/outbox.js';
import { type Settlement } from '../../lib/store/job-store.js';

const done = (id: string, claimSeq = '1', result?: string): Settlement => ({
  id,
  claimSeq,
  outcome: 'succeeded',
  ...(result === undefined ? {} : { result }),
});

describe('Outbox', () => {
  it('takes everything along, in the order of finishing', () => {
    const outbox = new Outbox();
    for (const id of ['a', 'b', 'c']) outbox.add(done(id));
    expect(outbox.next().entries.map(({ settlement }) => settlement.id)).toEqual(['a', 'b', 'c']);
  });

  it('holds two claims of one job apart, because answers are by job', () => {
    const outbox = new Outbox();
    outbox.add(done('a', '1'));
    outbox.add(done('a', '2'));
    const first = outbox.next();
    expect(first.entries).toHaveLength(1);
    outbox.remove(first.entries[0]!.key);
    expect(outbox.next().entries[0]?.settlement.claimSeq).toBe('2');
  });

  it('carries at most a megabyte of results, but always at least one', () => {
    const outbox = new Outbox();
    const big = 'x'.repeat(MOST_SENT_BYTES * 0.6);
    outbox.add(done('a', '1', big + big));
    outbox.add(done('b', '1', big));
    outbox.add(done('c', '1', big));
    const sent: number[] = [];
    while (outbox.size > 0) {
      const { entries } = outbox.next();
      sent.push(entries.length);
      for (const { key } of entries) outbox.remove(key);
    }
    expect(sent).toEqual([1, 1, 1]);
  });

  it('counts error texts and progress too', () => {
    const outbox = new Outbox();
    const big = 'x'.repeat(MOST_SENT_BYTES * 0.6);
    outbox.add({ id: 'a', claimSeq: '1', outcome: 'failed', error: big });
    outbox.add({ id: 'b', claimSeq: '1', outcome: 'snoozed', progress: big });
    outbox.add(done('c', '1', big));
    expect(outbox.next().entries.map(({ settlement }) => settlement.id)).toEqual(['a']);
    outbox.remove('a/1');
    expect(outbox.next().entries.map(({ settlement }) => settlement.id)).toEqual(['b']);
  });

  it('sends only the overdue ones when they are waited for', () => {
    const outbox = new Outbox();
    outbox.add(done('a'));
    outbox.add(done('b'));
    const [a] = outbox.next().entries;
    for (let skips = 0; skips < SKIPS_BEFORE_WAITING; skips += 1) outbox.skip(a!);
    expect(outbox.fresh).toBe(1);
    expect(outbox.next(SKIPS_BEFORE_WAITING)).toMatchObject({ entries: [a], overdue: true });
    expect(outbox.next()).toMatchObject({ overdue: false });
    outbox.forgetSkips([a!]);
    expect(outbox.next(SKIPS_BEFORE_WAITING)).toMatchObject({ overdue: false });
  });

  it('whatever rows are bad: each is recorded or parked, the good ones as they are, in few sends', () => {
    const kind = fc.constantFrom('good', 'bad result', 'bad reason', 'hopeless');
    fc.assert(
      fc.property(fc.array(kind, { minLength: 1, maxLength: 40 }), (kinds) => {
        const outbox = new Outbox();
        kinds.forEach((_, id) => outbox.add(done(String(id), '1', '"r"')));
        const refused = ({ id, outcome, error }: Settlement): boolean => {
          const row = kinds[Number(id)];
          if (row === 'bad result') return outcome === 'succeeded';
          if (row === 'bad reason') return outcome === 'succeeded' || error?.includes('reason') === true;
          return row === 'hopeless';
        };
        const recorded = new Map<string, Settlement>();
        let sends = 0;
        while (outbox.size > 0) {
          sends += 1;
          const parcel = outbox.next();
          if (parcel.entries.some(({ settlement }) => refused(settlement))) {
            outbox.split(parcel, 'the reason');
            continue;
          }
          outbox.passed(parcel);
          for (const { key, settlement } of parcel.entries) {
            recorded.set(settlement.id, settlement);
            outbox.remove(key);
          }
        }
        const bad = kinds.filter((row) => row !== 'good').length;
        expect(sends).toBeLessThanOrEqual(1 + bad * (2 * Math.ceil(Math.log2(kinds.length + 1)) + 4));
        kinds.forEach((row, id) => {
          const outcome = recorded.get(String(id))?.outcome;
          expect(outcome).toBe(row === 'good' ? 'succeeded' : row === 'hopeless' ? undefined : 'failed');
        });
        expect(outbox.parked).toBe(kinds.filter((row) => row === 'hopeless').length);
        const before = outbox.parked;
        outbox.unpark();
        expect(outbox.size).toBe(before);
      }),
    );
  });
});
