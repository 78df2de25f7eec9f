import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type CoordinatorMessage,
  decode,
  encode,
  readMessage,
} from '../../../lib/cluster/coordinators/coordinator-message.js';
import { type PriorityRank } from '../../../lib/jobs/priority.js';

const text = (maxLength: number) => fc.string({ minLength: 1, maxLength, unit: 'binary' });

const wakeup: fc.Arbitrary<CoordinatorMessage> = fc.record(
  {
    kind: fc.constant('wakeup' as const),
    lane: text(100),
    priority: fc.constantFrom<PriorityRank>(0, 1, 2, 3, 4),
    source: text(64),
    dueInMs: fc.integer({ min: 1, max: 1e12 }),
    behind: fc.constant(true),
  },
  { requiredKeys: ['kind', 'lane', 'priority', 'source'] },
);

const signal: fc.Arbitrary<CoordinatorMessage> = fc.record(
  {
    kind: fc.constantFrom('cancel' as const, 'awaited' as const, 'ended' as const),
    source: text(64),
    jobId: fc.uuid(),
    claimSeq: fc.bigInt({ min: 0n, max: 2n ** 63n }).map(String),
  },
  { requiredKeys: ['kind', 'source', 'jobId'] },
);

const messages = fc.array(fc.oneof(wakeup, signal), { maxLength: 60 });

describe('coordinator messages', () => {
  it('arrive as they were sent, in texts that are never too long', () => {
    fc.assert(
      fc.property(messages, fc.integer({ min: 2_000, max: 8_000 }), (sent, maxBytes) => {
        const texts = encode({ from: 'me', messages: sent }, maxBytes);
        for (const one of texts) expect(Buffer.byteLength(one)).toBeLessThanOrEqual(maxBytes);
        expect(texts.flatMap((one) => decode(one)!.messages)).toEqual(sent);
        expect(texts.every((one) => decode(one)!.from === 'me')).toBe(true);
      }),
    );
  });

  it('that do not fit alone are left out, and the others go', () => {
    const long: CoordinatorMessage = { kind: 'cancel', source: 'a'.repeat(200), jobId: 'j' };
    const short: CoordinatorMessage = { kind: 'cancel', source: 'a', jobId: 'j' };
    const texts = encode({ from: 'me', messages: [short, long, short] }, 150);
    expect(texts.flatMap((one) => decode(one)!.messages)).toEqual([short, short]);
  });

  it('are none, whatever somebody else writes to the channel', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (noise) => {
        expect(decode(noise)).toBeUndefined();
      }),
    );
  });

  it.each([
    ['of a later version', '{"v":2,"from":"x","messages":[]}'],
    ['without a sender', '{"v":1,"messages":[]}'],
    ['without messages', '{"v":1,"from":"x","messages":{}}'],
  ])('%s are ignored', (_what, noise) => {
    expect(decode(noise)).toBeUndefined();
  });

  it.each([
    { kind: 'wakeup', lane: '', priority: 2, source: 'a' },
    { kind: 'wakeup', lane: 'x'.repeat(101), priority: 2, source: 'a' },
    { kind: 'wakeup', lane: 'x', priority: 5, source: 'a' },
    { kind: 'wakeup', lane: 'x', priority: 1.5, source: 'a' },
    { kind: 'wakeup', lane: 'x', priority: '2', source: 'a' },
    { kind: 'wakeup', lane: 'x', priority: 2 },
    { kind: 'cancel', source: 'a' },
    { kind: 'cancel', source: 'a', jobId: 7 },
    { kind: 'of a later version', source: 'a', jobId: 'j' },
    null,
    'wakeup',
    [],
  ])('are checked field by field: %j is left out', (message) => {
    expect(readMessage(message)).toBeUndefined();
    const good = { kind: 'cancel', source: 'a', jobId: 'j' };
    const text = JSON.stringify({ v: 1, from: 'x', messages: [message, good] });
    expect(decode(text)?.messages).toEqual([good]);
  });

  it.each([0, -1, Number.NaN, null, 'soon'])('a due time of %p is now', (dueInMs) => {
    const message = { kind: 'wakeup', lane: 'x', priority: 2, source: 'a', dueInMs, behind: 'yes' };
    expect(readMessage(message)).toEqual({ kind: 'wakeup', lane: 'x', priority: 2, source: 'a' });
  });
});
