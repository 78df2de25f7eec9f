import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** `adoptCron`: a `@Cron` of @nestjs/schedule says something that no recurring schedule does. */
export class CronNotAdoptableError extends RatchetError {
  override readonly code = 'CRON_NOT_ADOPTABLE';

  constructor(
    /** `ReportJobs.daily`. */
    readonly owner: string,
    /** Of `@Cron`: `initialDelay`. */
    readonly option: string,
    readonly value: unknown,
    /** What to write instead; it ends the message. */
    mend: string,
  ) {
    super(
      `CRON_NOT_ADOPTABLE: ${owner}: ${option}: ${showValue(value)} of @Cron cannot be taken over by adoptCron; ${mend}`,
    );
  }
}

/** `adoptCron` beside a ScheduleModule that runs the same methods: each occurrence would run on every node as well. */
export class CronStillLocalError extends RatchetError {
  override readonly code = 'CRON_STILL_LOCAL';

  constructor() {
    super(
      'CRON_STILL_LOCAL: adoptCron: ScheduleModule runs the @Cron methods of this app too, on each node for itself; write ' +
        'ScheduleModule.forRoot({ cronJobs: false }), which leaves it @Interval, @Timeout and the SchedulerRegistry',
    );
  }
}
