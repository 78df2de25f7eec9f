import { type RecurringDeclaration } from '../decorators/recurring-mark.js';
import { describeError } from '../errors/describe-error.js';
import { InvalidRecurringOptionError, RecurringPayloadError } from '../errors/recurring-scheduler-errors.js';
import { type RatchetError } from '../errors/ratchet-error.js';
import { ArgumentCheck } from '../jobs/argument-check.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { encodePayload, payloadText } from '../jobs/payload-codec.js';
import { RECURRING_SUFFIX } from '../jobs/recurrence.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { readScheduleId } from '../recurring/schedule-options.js';
import { scheduleSpecOf, templateOf } from '../recurring/schedule-spec-of.js';
import { parseRule } from '../recurring/time/recurrence-rule.js';

/** What the module's options say of all schedules. */
export interface ScheduleDefaults {
  readonly timeZone: string;
  readonly payloadBytes: number;
}

/** Where a declaration was found. */
export interface DeclaredOn {
  /** `ReportJobs.daily`: the class of the instance. */
  readonly owner: string;
  readonly method: string;
  /** Of the `@Job` beside it. */
  readonly job: JobDefinition | undefined;
}

/** A `@Recurring` of one provider: its schedule, and the definition of the jobs that it makes. */
export interface FoundSchedule {
  readonly schedule: AnnotatedSchedule;
  readonly definition: JobDefinition;
  /**
   * Asks the schema of the definition, which may take its time.
   *
   * @throws RecurringPayloadError
   */
  readonly verify: () => Promise<void>;
}

/**
 * Makes the schedule that a declaration stands for, in this app.
 *
 * @throws InvalidRecurringOptionError, InvalidRecurrenceError, InvalidTimeZoneError, RecurringPayloadError
 */
export function foundSchedule(
  declaration: RecurringDeclaration,
  { owner, method, job }: DeclaredOn,
  defaults: ScheduleDefaults,
): FoundSchedule {
  const { source, options, scope, payload } = declaration;
  const id = declaration.id ?? defaultId(owner);
  if (job && scope === 'node') {
    const allowed = `'cluster': scope 'node' makes no jobs, so it needs a method without @Job("${job.name}")`;
    throw new InvalidRecurringOptionError(owner, 'scope', scope, allowed);
  }
  const rule = parseRule(source, options.timeZone ?? defaults.timeZone, { hashSeed: id, owner });
  const definition = job ?? definitionOf(id, declaration);
  const text = readable(owner, id, () => payloadText(definition, payload?.value, defaults.payloadBytes));
  // What the definition itself says need not be said of each job: a deploy mends those that wait, too.
  const own = job ? options : { ...options, maxRetries: undefined, backoff: undefined, timeoutMs: undefined };
  const spec = scheduleSpecOf(
    { id, origin: 'annotation', owner, scope, businessKey: undefined },
    rule,
    templateOf(definition, text),
    own,
  );
  const takesPayload = job !== undefined || payload !== undefined;
  return {
    schedule: { spec, method, jobName: definition.name, takesPayload },
    definition,
    verify: async () => {
      try {
        await encodePayload(definition, payload?.value, defaults.payloadBytes);
      } catch (error) {
        throw unreadable(owner, id, error);
      }
    },
  };
}

/** Of a method without `@Job`. Its name is longer than others may be. */
function definitionOf(id: string, { options }: RecurringDeclaration): JobDefinition {
  return Object.freeze({
    name: id + RECURRING_SUFFIX,
    version: 1,
    lane: options.lane ?? 'default',
    priority: options.priority ?? 'normal',
    maxRetries: options.maxRetries ?? 0,
    backoff: options.backoff,
    timeoutMs: options.timeoutMs,
    history: 'keep',
    schema: undefined,
    upcast: undefined,
  });
}

function defaultId(owner: string): string {
  const check = new ArgumentCheck(
    (path, value, allowed) =>
      new InvalidRecurringOptionError(owner, path, value, `${allowed}; give the @Recurring an id of its own`),
  );
  if (owner.startsWith('an anonymous class')) {
    return check.refuse('id', undefined, 'a text, since the class has no name that could be the default');
  }
  return readScheduleId(check, 'id', owner);
}

function readable<T>(owner: string, id: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw unreadable(owner, id, error);
  }
}

/** Its own errors name a job, which the reader of a boot error may never have heard of. */
function unreadable(owner: string, id: string, cause: unknown): RatchetError {
  return new RecurringPayloadError(owner, id, describeError(cause).message, { cause });
}
