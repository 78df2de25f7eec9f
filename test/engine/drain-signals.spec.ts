import { EventEmitter } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { DrainSignals } from '../../lib/engine/drain-signals.js';

/** A process that only notes how it would end. */
class Process extends EventEmitter {
  readonly pid = 7;
  readonly killed: string[] = [];

  kill(pid: number, signal: string): void {
    this.killed.push(`${pid} ${signal}`);
  }

  get listening(): number {
    return this.listenerCount('SIGTERM') + this.listenerCount('SIGINT');
  }

  drain(): DrainSignals {
    return new DrainSignals(this as never);
  }
}

describe('signals during a drain', () => {
  it('the first one hurries it; the listener goes with the drain', async () => {
    const on = new Process();
    on.on('SIGTERM', () => {});
    const signals = on.drain();
    signals.awaited();
    expect(signals.heard).toBeUndefined();
    on.emit('SIGTERM', 'SIGTERM');
    await signals.hurried;
    on.emit('SIGTERM', 'SIGTERM');
    signals.end();
    expect(signals.heard).toBe('SIGTERM');
    expect(on.listening).toBe(1);
    expect(on.killed).toEqual([]);
  });

  it('one that nobody else listens to ends the process after the drain, however many drains there are', async () => {
    const on = new Process();
    const both = [on.drain(), on.drain()];
    for (const signals of both) signals.awaited();
    on.emit('SIGINT', 'SIGINT');
    await Promise.all(both.map(({ hurried }) => hurried));
    expect(on.killed).toEqual([]);
    for (const signals of both) signals.end();
    expect(on.killed).toEqual(['7 SIGINT', '7 SIGINT']);
    expect(on.listening).toBe(0);
  });

  it('while nobody waits for the drain, such a signal ends the process at once', () => {
    const on = new Process();
    on.drain();
    on.emit('SIGTERM', 'SIGTERM');
    expect(on.killed).toEqual(['7 SIGTERM']);
    expect(on.listening).toBe(0);
  });

  it('and one that somebody listens to is theirs', () => {
    const on = new Process();
    on.on('SIGTERM', () => {});
    const signals = on.drain();
    on.emit('SIGTERM', 'SIGTERM');
    expect(on.killed).toEqual([]);
    signals.end();
    expect(on.listening).toBe(1);
  });
});
