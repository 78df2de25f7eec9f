import { describe, expect, it } from '@jest/globals';
import { LISTEN_TIMING, ListenConnection } from '../../../lib/cluster/coordinators/listen-connection.js';
import { FakeClock, settled } from '../../support/fake-clock.js';

/** One that never gets as far as a socket. */
function refused(clock = new FakeClock()): {
  connection: ListenConnection;
  attempts: () => number;
  clock: FakeClock;
} {
  let attempts = 0;
  const connection = new ListenConnection({
    config: () => {
      attempts += 1;
      return Promise.reject(new Error('refused'));
    },
    applicationName: 'test',
    channel: 'c',
    clock,
    timing: LISTEN_TIMING,
    onPayload: () => undefined,
    onUp: () => undefined,
    onDown: () => undefined,
  });
  return { connection, attempts: () => attempts, clock };
}

async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    clock.advance(50);
    await settled();
  }
}

describe('ListenConnection', () => {
  it('notices silence within 30 seconds', () => {
    expect(LISTEN_TIMING.probeEveryMs + LISTEN_TIMING.replyMs).toBeLessThan(30_000);
  });

  it('tries again after 200 ms at first, and ever more slowly up to every 10 seconds', async () => {
    const { connection, attempts, clock } = refused();
    connection.start();
    connection.start();
    await settled();
    expect(attempts()).toBe(1);
    await pass(clock, 400);
    expect(attempts()).toBeGreaterThanOrEqual(2);
    await pass(clock, 60_000);
    const inTheFirstMinute = attempts();
    expect(inTheFirstMinute).toBeLessThan(25);
    await pass(clock, 60_000);
    const inTheSecond = attempts() - inTheFirstMinute;
    expect(inTheSecond).toBeGreaterThanOrEqual(5);
    expect(inTheSecond).toBeLessThanOrEqual(13);
    await connection.close();
  });

  it('leaves no timer at the close, and does not start again', async () => {
    const { connection, attempts, clock } = refused();
    connection.start();
    await settled();
    expect(clock.pending).toBe(1);
    await connection.close();
    await connection.close();
    expect(clock.pending).toBe(0);
    connection.start();
    await pass(clock, 60_000);
    expect(attempts()).toBe(1);
  });

  it('counts settings that do not come as a failed connect, and tries again', async () => {
    const clock = new FakeClock();
    const reasons: string[] = [];
    let calls = 0;
    const connection = new ListenConnection({
      config: () => {
        calls += 1;
        return new Promise(() => {});
      },
      applicationName: 'test',
      channel: 'c',
      clock,
      timing: LISTEN_TIMING,
      onPayload: () => undefined,
      onUp: () => undefined,
      onDown: (reason) => void reasons.push(reason),
    });
    connection.start();
    await pass(clock, LISTEN_TIMING.replyMs + 1_000);
    expect(reasons).toEqual([expect.stringContaining('did not come within 10000 ms')]);
    expect(calls).toBe(2);
    await connection.close();
    expect(clock.pending).toBe(0);
    expect(reasons).toHaveLength(1);
  });

  it('closes before it began', async () => {
    const { connection, attempts } = refused();
    await connection.close();
    connection.start();
    await settled();
    expect(attempts()).toBe(0);
  });
});
