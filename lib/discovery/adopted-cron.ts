import { type RecurringDeclaration } from '../decorators/recurring-mark.js';
import { CronNotAdoptableError } from '../errors/cron-adoption-errors.js';
import { nearest } from '../errors/nearest.js';
import { ArgumentCheck, type Given } from '../jobs/argument-check.js';
import { readScheduleId, readScheduleOptions } from '../recurring/schedule-options.js';

/** A `@Cron` as the `@Recurring` that does the same. */
export interface AdoptedCron {
  readonly declaration: RecurringDeclaration;
  /** It said no zone. */
  readonly zoneOfProcess: boolean;
}

/** What says how the timer of a process behaves, and means nothing to a schedule of the cluster. */
const IGNORED: readonly string[] = ['unrefTimeout'];
const MAPPED: readonly string[] = ['cronTime', 'name', 'timeZone', 'disabled', 'waitForCompletion'];

/** What cannot be done, and what to write instead. */
const REFUSED: Readonly<Record<string, string>> = {
  initialDelay:
    'no node may delay what belongs to all of them; leave it out (jobs run when their node is ready), or use @Interval',
  threshold:
    'leave it out: an occurrence counts as missed when no node saw to it within 10 s (misfire of @Recurring says what follows)',
  utcOffset: 'give a timeZone, such as "Europe/Lisbon" or "Etc/GMT-2" (which is 2 h east of Greenwich)',
};

const A_DATE =
  'a time that comes once is no schedule: enqueue a job with runAt, or give a cron text such as "0 6 * * *"';

/**
 * Maps what `@Cron` says. What it does not say is as it was under @nestjs/schedule, so that nothing else changes: no retries, runs
 * may overlap, what nobody was there for is not made up, and times are those of the process's own zone.
 *
 * @param owner - `ReportJobs.daily`: the class of the instance.
 * @throws CronNotAdoptableError
 */
export function adoptedCron(owner: string, options: object): AdoptedCron {
  const given = options as Given;
  const check = new ArgumentCheck((path, value, allowed) => {
    return new CronNotAdoptableError(owner, path, value, `allowed: ${allowed}`);
  });
  refuseOthers(owner, given);
  const { cronTime, name, timeZone } = given;
  if (typeof cronTime !== 'string') throw new CronNotAdoptableError(owner, 'cronTime', cronTime, A_DATE);
  const zoneOfProcess = timeZone === undefined || timeZone === null || timeZone === '';
  return {
    declaration: {
      source: cronTime,
      id: name === undefined || name === null ? idOf(owner, check) : readScheduleId(check, 'name', name),
      scope: 'cluster',
      payload: undefined,
      options: readScheduleOptions(check, {
        timeZone: zoneOfProcess ? zoneOf() : timeZone,
        enabled: !given['disabled'],
        overlap: given['waitForCompletion'] ? 'skip' : 'allow',
        misfire: 'skip',
        maxRetries: 0,
      }),
    },
    zoneOfProcess,
  };
}

function refuseOthers(owner: string, given: Given): void {
  for (const [option, value] of Object.entries(given)) {
    if (value === undefined || value === null || IGNORED.includes(option) || MAPPED.includes(option))
      continue;
    const near = nearest(option, MAPPED);
    const unknown = `adoptCron knows ${MAPPED.join(', ')}${near === undefined ? '' : `; did you mean ${near}?`}`;
    throw new CronNotAdoptableError(owner, option, value, REFUSED[option] ?? unknown);
  }
}

function idOf(owner: string, check: ArgumentCheck): string {
  if (owner.startsWith('an anonymous class')) {
    return check.refuse('name', undefined, 'a text, since the class has no name that could be the default');
  }
  return readScheduleId(check, 'name', owner);
}

/** As the timers of the process read the clock on the wall. */
function zoneOf(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}
