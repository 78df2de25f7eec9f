import { describe, expect, it } from '@jest/globals';
import { type BucketInfo } from 'nestjs-ratchet';
import { LiveView, type ViewOutput } from './live-view.js';

function bucket(change: Partial<BucketInfo>): BucketInfo {
  return {
    id: 'b1',
    lane: 'mail',
    kind: 'standard',
    status: 'active',
    node: { id: 'node-1', epoch: '1' },
    createdAt: new Date(0),
    statusAt: new Date(0),
    ageMs: 2_500,
    statusAgeMs: 2_500,
    begun: 1,
    buffered: 0,
    lanePaused: false,
    ...change,
  };
}

/** A view of what `list` says at each look, and all that it writes. */
function viewOf(looks: readonly (readonly BucketInfo[])[], screen: Omit<ViewOutput, 'write'> = {}) {
  const written: string[] = [];
  let look = 0;
  const view = new LiveView({
    buckets: { list: () => Promise.resolve(looks[look++] ?? []) },
    scheduler: { count: () => Promise.resolve(7) },
    out: { ...screen, write: (text: unknown) => written.push(String(text)) > 0 },
  });
  return { view, written };
}

describe('the live view of the buckets', () => {
  it('is painted over in place in a terminal, below the lines of the story', async () => {
    const { view, written } = viewOf([[bucket({})], [bucket({ lanePaused: true, begun: 0 })]], {
      isTTY: true,
      columns: 80,
      rows: 24,
    });
    await view.look();
    expect(written.join('')).toMatch(/\nLANE .*\nmail +all +node-1 +active +1 +0 +2 s\n\nmail: 1 running/);
    written.length = 0;
    await view.look();
    view.say('a line');
    const [erased, painted, again, line, below] = written;
    expect(erased).toBe('\u001b[5A\u001b[0J');
    expect(painted).toContain('paused');
    expect([again, line, below]).toEqual([erased, 'a line\n', painted]);
  });

  it('never paints what it could not paint over: lines that wrap, or more than the screen has', async () => {
    const many = Array.from({ length: 30 }, (_, n) => bucket({ id: `b${n}` }));
    const { view, written } = viewOf([many], { isTTY: true, columns: 20, rows: 10 });
    await view.look();
    const lines = written.join('').split('\n').slice(0, -1);
    expect(lines).toHaveLength(9);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(20);
  });

  it('is lines elsewhere: what comes, changes and goes', async () => {
    const mine = bucket({ priority: 'high' });
    const { view, written } = viewOf([
      [mine],
      [{ ...mine, status: 'completing' }, bucket({ id: 'b2', lane: 'default' })],
      [],
    ]);
    await view.look();
    await view.look();
    await view.look();
    expect(written).toEqual([
      '  node-1: new -> active: mail/high\n',
      '  mail: 1 running, 0 buffered, 7 waiting · reports: 0 running, 0 buffered, 7 waiting\n',
      '  node-1: active -> completing: mail/high\n',
      '  node-1: completing -> gone: mail/high\n',
    ]);
  });
});
