import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RenewedMap } from '../../lib/collections/renewed-map.js';

describe('a renewed map', () => {
  it('is a map, whatever comes and goes', () => {
    const step = fc.record({ key: fc.integer({ min: 0, max: 30 }), stays: fc.boolean(), value: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
        const renewed = new RenewedMap<number, number>();
        const map = new Map<number, number>();
        for (const { key, stays, value } of steps) {
          if (stays) {
            renewed.set(key, value);
            map.set(key, value);
          } else expect(renewed.delete(key)).toBe(map.delete(key));
          expect(renewed.get(key)).toBe(map.get(key));
          expect(renewed.has(key)).toBe(map.has(key));
          expect(renewed.size).toBe(map.size);
        }
        expect([...renewed.values()]).toEqual([...map.values()]);
      }),
    );
  });

  it('goes on with a walk in which entries are deleted when they are reached', () => {
    const renewed = new RenewedMap<number, number>();
    for (let n = 0; n < 1_000; n += 1) renewed.set(n, n);
    const seen: number[] = [];
    for (const value of renewed.values()) {
      seen.push(value);
      renewed.delete(value);
    }
    expect(seen).toHaveLength(1_000);
    expect(renewed.size).toBe(0);
  });
});
