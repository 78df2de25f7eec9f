import { describe, expect, it } from '@jest/globals';
import { MissingScheduleStore } from '../../../lib/store/missing-schedule-store.js';
import { PostgresScheduleStore } from '../../../lib/store/postgres/postgres-schedule-store.js';
import { ScheduleStore } from '../../../lib/store/schedule-store.js';

describe('MissingScheduleStore', () => {
  it('refuses whatever the port offers, and names the option', async () => {
    const store: object = new MissingScheduleStore();
    expect(store).toBeInstanceOf(ScheduleStore);
    const methods = Object.getOwnPropertyNames(PostgresScheduleStore.prototype).filter(
      (name) => name !== 'constructor',
    );
    expect(methods).toContain('fire');
    for (const method of methods) {
      const call = (store as Record<string, () => Promise<unknown>>)[method]!;
      await expect(call()).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('scheduleStore'),
      });
    }
  });
});
