import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { RenewedSet } from '../../lib/collections/renewed-set.js';

it('a renewed set is a set, whatever comes and goes', () => {
  const step = fc.record({ member: fc.integer({ min: 0, max: 30 }), stays: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
      const renewed = new RenewedSet<number>();
      const set = new Set<number>();
      for (const { member, stays } of steps) {
        if (stays) {
          renewed.add(member);
          set.add(member);
        } else expect(renewed.delete(member)).toBe(set.delete(member));
        expect(renewed.has(member)).toBe(set.has(member));
      }
      expect([...renewed]).toEqual([...set]);
      expect(renewed.size).toBe(set.size);
    }),
  );
});
