import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** The id of an annotated schedule is that of one that was created in code, which no annotation ever takes over. */
export class ScheduleIdTakenError extends RatchetError {
  override readonly code = 'RECURRING_SCHEDULE_ID_TAKEN';

  constructor(
    readonly scheduleId: string,
    /** `ReportJobs.daily`. */
    owner: string,
    /** Of the schedule that has the id. */
    name: string,
  ) {
    super(
      `RECURRING_SCHEDULE_ID_TAKEN: ${owner}: the schedule ${showValue(scheduleId, 200)} (${showValue(name, 200)}) was created in code, by ` +
        'RecurringScheduler.create; give the @Recurring another id, or delete that one',
    );
  }
}

/** Other nodes changed an annotated schedule each time that this one wrote it: they have other code, and start as often. */
export class ScheduleRegistrationError extends RatchetError {
  override readonly code = 'RECURRING_REGISTRATION_CONTENDED';
  override readonly retryable = true;

  constructor(
    readonly scheduleIds: readonly string[],
    tries: number,
  ) {
    super(
      `RECURRING_REGISTRATION_CONTENDED: ${scheduleIds.map((id) => showValue(id, 200)).join(', ')}: changed by others at each of ${tries} ` +
        'tries to register; start the node again',
    );
  }
}
