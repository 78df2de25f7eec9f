import { describe, expect, it } from '@jest/globals';
import { EngineFaults } from '../../lib/engine/engine-faults.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { StoreError } from '../../lib/store/store-fault.js';
import { FakeClock } from '../support/fake-clock.js';

const AWAY = new StoreError('unavailable', 'no route', undefined);

function faultLines(): { faults: EngineFaults; clock: FakeClock; lines: string[] } {
  const clock = new FakeClock();
  const lines: string[] = [];
  const logger = {
    log: (line: string): void => void lines.push(`log ${line}`),
    warn: (line: string): void => void lines.push(`warn ${line}`),
    error: (line: string): void => void lines.push(`error ${line}`),
  };
  return { faults: new EngineFaults(clock, logger, new EngineEvents()), clock, lines };
}

describe('EngineFaults', () => {
  it('tells a fault that waits for a person even when another line was told just before, once a second', () => {
    const { faults, clock, lines } = faultLines();
    const locked = new StoreError('fatal', 'password authentication failed', '28P01');
    const grant = new StoreError('fatal', 'permission denied', '42501');
    faults.failed('exchange', AWAY, 100);
    for (const error of [locked, grant, locked, grant]) faults.failed('exchange', error, 100);
    expect(lines).toEqual([
      expect.stringMatching(/^warn .*no route/),
      expect.stringMatching(/^error .*password/),
      expect.stringMatching(/^error .*permission denied/),
    ]);
    clock.advance(1_000);
    faults.failed('exchange', locked, 100);
    expect(lines[3]).toMatch(/^error .*password.*2 more not shown/);
  });

  it('bounds them too, when each reads differently', () => {
    const { faults, lines } = faultLines();
    for (let at = 0; at < 100; at += 1) {
      faults.failed('exchange', new StoreError('fatal', `row ${at}`, undefined), 100);
    }
    expect(lines).toHaveLength(5);
  });

  it('says that the database works again, also when the bucket that failed is no more', () => {
    const { faults, lines } = faultLines();
    faults.failed('exchange', AWAY, 100, 'old');
    faults.failed('reconcile', AWAY, 100, 'old');
    faults.failed('exchange', AWAY, 100, 'beside');
    faults.forget('old');
    faults.worked('exchange', 'new');
    expect(lines).toHaveLength(1);
    faults.worked('exchange', 'beside');
    faults.worked('exchange', 'new');
    expect(lines.slice(1)).toEqual(['log the database works again (exchange had failed 1 times)']);
    faults.failed('exchange', AWAY, 100, 'new');
    faults.forget('new');
    faults.worked('exchange', 'newest');
    expect(lines.at(-1)).toBe('log the database works again (exchange)');
  });
});
