import { describe, expect, it } from '@jest/globals';
import { type BucketRef } from '../../lib/store/job-store.js';
import { type Row } from '../../lib/store/sql-client.js';
import { BucketMoves } from '../../lib/store/postgres/bucket-moves.js';

const bucket = (id: string): BucketRef => ({ id, epoch: 1, lane: 'l', node: { id: 'n', epoch: '1' } });

/** Answers for the ids of a statement. */
function movesOver(answer: (ids: readonly string[]) => Row[]): {
  moves: BucketMoves;
  asked: string[][];
} {
  const asked: string[][] = [];
  const moves = new BucketMoves({
    offsetMs: 0,
    service: async (_, parameters) => {
      const ids = parameters?.find((parameter) => Array.isArray(parameter)) as string[];
      asked.push(ids);
      return answer(ids);
    },
  });
  return { moves, asked };
}

describe('BucketMoves', () => {
  it('sends one statement for each step that is asked for in one tick', async () => {
    const { moves, asked } = movesOver((ids) => ids.filter((id) => id !== 'b').map((id) => ({ id })));
    const together = [
      ...['a', 'b', 'c'].map((id) => moves.move(bucket(id), 'active', 'completing')),
      moves.move(bucket('d'), 'completing', 'ready_to_drain'),
    ];
    expect(await Promise.all(together)).toEqual([true, false, true, true]);
    expect(asked).toEqual([['a', 'b', 'c'], ['d']]);
  });

  it('tries each alone when they fail together: only the one that fails is told', async () => {
    const held = new Error('held');
    const { moves } = movesOver((ids) => {
      if (ids.includes('b')) throw held;
      return ids.map((id) => ({ id }));
    });
    const together = ['a', 'b', 'c'].map((id) => moves.move(bucket(id), 'active', 'completing'));
    expect(await Promise.allSettled(together)).toEqual([
      { status: 'fulfilled', value: true },
      { status: 'rejected', reason: held },
      { status: 'fulfilled', value: true },
    ]);
  });
});
