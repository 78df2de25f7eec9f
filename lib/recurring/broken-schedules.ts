import { cleanText } from '../errors/clean-text.js';
import { showValue } from '../errors/show-value.js';
import { type BrokenSchedule } from '../store/schedule-store.js';
import { type RecurringParts } from './recurring-parts.js';

const FAULT_BYTES = 2_000;
/** More lines at once would be noise: the list of schedules shows all. */
const MOST_LINES = 5;

/** Takes schedules out that cannot be read, planned or fired: they are shown with their fault, and do not run until somebody changes them. */
export class BrokenSchedules {
  constructor(private readonly parts: Pick<RecurringParts, 'store' | 'events' | 'logger'>) {}

  /**
   * False: one of them was changed meanwhile, and may be whole now. Rejects when the database is away; it tries all the same to
   * mark each, since one that cannot be marked must not keep the others.
   */
  async mark(broken: readonly BrokenSchedule[]): Promise<boolean> {
    const { store, events, logger } = this.parts;
    const marked: BrokenSchedule[] = [];
    let failure: { readonly error: unknown } | undefined;
    for (const { id, revision, fault } of broken) {
      const text = cleanText(fault, FAULT_BYTES);
      try {
        if (!(await store.mark(id, revision, { kind: 'broken', fault: text }))) continue;
        marked.push({ id, revision, fault: text });
        events.emit('schedule_broken', { scheduleId: id, fault: text });
      } catch (error) {
        failure = { error };
      }
    }
    for (const { id, fault } of marked.slice(0, MOST_LINES)) {
      logger.error(
        `the recurring schedule ${showValue(id)} is broken, and does not run until it is changed (or its node starts again): ${fault}`,
      );
    }
    if (marked.length > MOST_LINES)
      logger.error(
        `${marked.length - MOST_LINES} more recurring schedules are broken: RecurringScheduler.list() shows them`,
      );
    if (failure) throw failure.error;
    return marked.length === broken.length;
  }
}
