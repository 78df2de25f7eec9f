import { InvalidRecurringOptionError } from '../errors/recurring-scheduler-errors.js';
import { reading } from '../errors/reading.js';
import { ArgumentCheck, type Given } from '../jobs/argument-check.js';
import { type RecurringScope } from '../jobs/recurrence.js';
import { refuseLongJitter } from '../recurring/refuse-long-jitter.js';
import { readScheduleId, readScheduleOptions, SCHEDULE_KEYS } from '../recurring/schedule-options.js';
import { parseRule, type RuleSource } from '../recurring/time/recurrence-rule.js';
import { type RecurringDeclaration } from './recurring-mark.js';

const KEYS: readonly string[] = [...SCHEDULE_KEYS, 'id', 'scope', 'payload'];
const SCOPES = ['cluster', 'node'] as const satisfies readonly RecurringScope[];
/** What only a job has, and a run in the memory of a node has not. */
const OF_JOBS = ['priority', 'lane', 'maxRetries', 'backoff', 'misfire'] as const;

/**
 * Reads one `@Recurring`. The rule is judged here, by the zone that is said or by UTC: another zone of the module's options
 * moves its times, and makes no right rule wrong.
 *
 * @param owner - `ReportJobs.daily`.
 * @throws InvalidRecurringOptionError, InvalidRecurrenceError, InvalidTimeZoneError
 */
export function readRecurring(owner: string, source: unknown, given: unknown): RecurringDeclaration {
  const refusal = (path: string, value: unknown, allowed: string): InvalidRecurringOptionError =>
    new InvalidRecurringOptionError(owner, path, value, allowed);
  return reading(
    () => declarationOf(owner, source as RuleSource, given, new ArgumentCheck(refusal)),
    (allowed, cause) => new InvalidRecurringOptionError(owner, 'options', given, allowed, { cause }),
  );
}

function declarationOf(
  owner: string,
  source: RuleSource,
  options: unknown,
  check: ArgumentCheck,
): RecurringDeclaration {
  const given = check.object('options', options === undefined ? {} : options, KEYS, '');
  const id = check.optional('id', given['id'], (path, value) => readScheduleId(check, path, value));
  const read = readScheduleOptions(check, given);
  const scope = check.optional('scope', given['scope'], (path, value) => check.oneOf(path, value, SCOPES));
  if (scope === 'node') refuseOfJobs(check, given);
  const rule = parseRule(source, read.timeZone ?? 'UTC', { hashSeed: id ?? owner, owner });
  refuseLongJitter(owner, read.jitterMs, rule);
  return {
    source: typeof source === 'string' ? source : { every: source.every },
    id,
    scope: scope ?? 'cluster',
    options: read,
    payload: Object.hasOwn(given, 'payload') ? { value: given['payload'] } : undefined,
  };
}

function refuseOfJobs(check: ArgumentCheck, given: Given): void {
  for (const key of OF_JOBS) {
    if (given[key] === undefined) continue;
    check.refuse(key, given[key], "nothing with scope 'node': each node calls the method, and makes no job");
  }
}
