import { counted } from './counted.js';
import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';
import { wrongValue } from './wrong-value.js';

/** An option of `@Recurring`, or an argument of `RecurringScheduler`, cannot be right. Nothing was asked or changed. */
export class InvalidRecurringOptionError extends RatchetError {
  override readonly code = 'INVALID_RECURRING_OPTION';

  constructor(
    /** `ReportJobs.daily` of annotations, else the call: `create("daily-digest")`. */
    readonly owner: string,
    /** Its path: `misfire.catchUp`. */
    readonly option: string,
    readonly value: unknown,
    readonly allowed: string,
    options?: { cause?: unknown },
  ) {
    super(`INVALID_RECURRING_OPTION: ${owner}: ${option}: ${wrongValue(value, allowed)}`, options);
  }
}

/** The `payload` of a `@Recurring` is none that the `@Job` beside it takes, or none that can be stored. */
export class RecurringPayloadError extends RatchetError {
  override readonly code = 'RECURRING_BAD_PAYLOAD';

  constructor(
    /** `ReportJobs.daily`. */
    readonly owner: string,
    readonly scheduleId: string,
    problem: string,
    options: { cause: unknown },
  ) {
    super(
      `RECURRING_BAD_PAYLOAD: ${owner}: the payload of @Recurring ${showValue(scheduleId)}: ${problem}`,
      options,
    );
  }
}

/** Two annotations have one schedule id: they would be one schedule. */
export class DuplicateScheduleError extends RatchetError {
  override readonly code = 'DUPLICATE_SCHEDULE';

  constructor(
    readonly scheduleId: string,
    first: string,
    second: string,
    /** `@Recurring`, `@Cron`. */
    decorator = '@Recurring',
  ) {
    super(
      `DUPLICATE_SCHEDULE: ${second}: the schedule ${showValue(scheduleId, 200)} is already that of ${first}; ` +
        (decorator === '@Cron'
          ? 'give each @Cron a name of its own'
          : 'give each @Recurring an id of its own'),
    );
  }
}

/** `create`: a schedule of that id is there. */
export class RecurringScheduleExistsError extends RatchetError {
  override readonly code = 'RECURRING_SCHEDULE_EXISTS';

  constructor(
    readonly scheduleId: string,
    /** Of the annotation that has it; `undefined` when it was created in code. */
    readonly annotated: string | undefined,
  ) {
    super(
      `RECURRING_SCHEDULE_EXISTS: create: the schedule ${showValue(scheduleId, 200)} is there already` +
        (annotated === undefined
          ? "; set ifExists to 'keep' or 'replace', or update() it"
          : `, by the @Recurring of ${annotated}, which create() never takes over; use another id`),
    );
  }
}

/** There is no such schedule (any more). */
export class RecurringScheduleNotFoundError extends RatchetError {
  override readonly code = 'RECURRING_SCHEDULE_NOT_FOUND';

  constructor(
    call: string,
    readonly scheduleId: string,
    near: string | undefined,
  ) {
    const mend =
      near === undefined
        ? 'it was never created, was deleted, or its annotation was removed'
        : `did you mean ${showValue(near, 200)}?`;
    super(
      `RECURRING_SCHEDULE_NOT_FOUND: ${call}: ${showValue(scheduleId, 200)} is no recurring schedule; ${mend}`,
    );
  }
}

/** What an annotation says can only be changed where it stands. */
export class AnnotatedScheduleError extends RatchetError {
  override readonly code = 'RECURRING_SCHEDULE_ANNOTATED';

  constructor(
    call: string,
    readonly scheduleId: string,
    owner: string,
  ) {
    const mend = {
      update: 'change it there and deploy; pause() and resume() work on it too',
      delete:
        'remove it there and deploy; until then pause() stops it on all nodes, or set enabled: false there',
    }[call];
    super(
      `RECURRING_SCHEDULE_ANNOTATED: ${call}: the schedule ${showValue(scheduleId, 200)} is the @Recurring of ${owner}; ${mend}`,
    );
  }
}

/** Another schedule has the business key. */
export class ScheduleKeyHeldError extends RatchetError {
  override readonly code = 'RECURRING_BUSINESS_KEY_HELD';

  constructor(
    call: string,
    readonly businessKey: string,
    /** The id of the schedule that has it. */
    readonly holder: string,
  ) {
    super(
      `RECURRING_BUSINESS_KEY_HELD: ${call}: businessKey: ${showValue(businessKey, 200)} is held by the schedule ${showValue(holder, 200)}; ` +
        'delete that one, update() it, or use another key',
    );
  }
}

/** `trigger`: each node runs such a schedule for itself, so there is no job that could be made. */
export class NodeScheduleError extends RatchetError {
  override readonly code = 'RECURRING_SCHEDULE_OF_NODES';

  constructor(
    call: string,
    readonly scheduleId: string,
  ) {
    super(
      `RECURRING_SCHEDULE_OF_NODES: ${call}: the schedule ${showValue(scheduleId, 200)} has scope 'node': each node runs it for itself, ` +
        "and no job is made of it; call the method itself, or give the schedule the scope 'cluster'",
    );
  }
}

/** A change met another one each time that it was tried. */
export class ScheduleContendedError extends RatchetError {
  override readonly code = 'RECURRING_SCHEDULE_CONTENDED';
  override readonly retryable = true;

  constructor(
    call: string,
    readonly scheduleId: string,
    tries: number,
  ) {
    super(
      `RECURRING_SCHEDULE_CONTENDED: ${call}: the schedule ${showValue(scheduleId, 200)} was changed by somebody else ` +
        `at each of ${counted(tries, 'try', 'tries')}; try again`,
    );
  }
}
