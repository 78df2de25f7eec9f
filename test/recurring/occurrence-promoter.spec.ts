import { describe, expect, it } from '@jest/globals';
import { OccurrencePromoter } from '../../lib/recurring/occurrence-promoter.js';
import { OccurrenceReport } from '../../lib/recurring/occurrence-report.js';
import { settled } from '../support/fake-clock.js';
import { firedJob, scriptedParts } from './fake-schedules.js';

describe('OccurrencePromoter', () => {
  it.each(Array.from({ length: 16 }, (_, microtasks) => microtasks))(
    'looks again for who wakes it %d microtasks later, also when it is just ending',
    async (microtasks) => {
      const { parts, schedules } = scriptedParts();
      schedules.promotions = [[firedJob({ scheduleId: 'a' })]];
      const promoter = new OccurrencePromoter({ ...parts, report: new OccurrenceReport(parts) });
      promoter.start();
      promoter.wake();
      for (let turn = 0; turn < microtasks; turn += 1) await Promise.resolve();
      promoter.wake();
      await settled();
      expect(schedules.asked.promote).toBe(2);
      await promoter.stop();
    },
  );
});
