import { describe, expect, it } from '@jest/globals';
import { EngineFaults } from '../../lib/engine/engine-faults.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';
import { StoreError, type StoreFaultKind } from '../../lib/store/store-fault.js';
import { FakeClock } from '../support/fake-clock.js';

describe('the mend in the line of a failed statement', () => {
  it.each<[StoreFaultKind, string | undefined, string]>([
    ['unavailable', 'ECONNREFUSED', 'the database is away; trying again'],
    ['unavailable', '55P03', 'somebody holds a lock'],
    ['unavailable', '57014', 'it took longer than it may'],
    ['unavailable', '25006', 'the database refuses writes'],
    ['unavailable', '53300', 'the server is short of connections'],
    ['fatal', '42501', 'trying again'],
  ])('of %s %s', (kind, code, mend) => {
    const lines: string[] = [];
    const say = (line: string): void => void lines.push(line);
    const faults = new EngineFaults(new FakeClock(), { log: say, warn: say, error: say }, new EngineEvents());
    faults.failed('exchange', new StoreError(kind, 'why', code), 100);
    expect(lines).toEqual([expect.stringContaining(`exchange failed: why; ${mend}`)]);
  });
});
