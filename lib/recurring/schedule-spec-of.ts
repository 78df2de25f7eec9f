import { type JobDefinition } from '../jobs/job-definition.js';
import { rankOf } from '../jobs/priority.js';
import { type JobTemplate, type ScheduleSpec } from '../jobs/schedule-spec.js';
import { type ReadScheduleOptions } from './schedule-options.js';
import { type StoredRule } from './time/recurrence-rule.js';

/** Who a schedule is, and what nobody can choose. */
export type ScheduleIdentity = Pick<ScheduleSpec, 'id' | 'origin' | 'owner' | 'scope' | 'businessKey'>;

/**
 * What every occurrence runs, before the options of the schedule. Retries that the definition does not mention are none: the
 * next occurrence comes anyway, and one that waits for its retry holds up the schedule.
 *
 * @param payload - JSON text.
 */
export function templateOf(definition: JobDefinition, payload: string): JobTemplate {
  return {
    name: definition.name,
    version: definition.version,
    lane: definition.lane,
    priority: rankOf(definition.priority),
    payload,
    maxRetries: definition.maxRetries === undefined ? 0 : undefined,
    backoff: undefined,
    timeoutMs: undefined,
    tags: [],
  };
}

/** A schedule with every default filled in. */
export function scheduleSpecOf(
  identity: ScheduleIdentity,
  rule: StoredRule,
  template: JobTemplate,
  options: ReadScheduleOptions,
): ScheduleSpec {
  const defaults: ScheduleSpec = {
    ...identity,
    name: identity.id,
    expression: rule.expression,
    timeZone: rule.timeZone,
    template,
    misfire: 'once',
    overlap: 'skip',
    jitterMs: 0,
    enabled: true,
  };
  return withOptions(defaults, options);
}

/** The schedule with what the options say of it; its rule is left alone. */
export function withOptions(spec: ScheduleSpec, options: ReadScheduleOptions): ScheduleSpec {
  const { template } = spec;
  const { priority } = options;
  return {
    ...spec,
    name: options.name ?? spec.name,
    misfire: options.misfire ?? spec.misfire,
    overlap: options.overlap ?? spec.overlap,
    jitterMs: options.jitterMs ?? spec.jitterMs,
    enabled: options.enabled ?? spec.enabled,
    template: {
      ...template,
      lane: options.lane ?? template.lane,
      priority: priority === undefined ? template.priority : rankOf(priority),
      maxRetries: options.maxRetries ?? template.maxRetries,
      backoff: options.backoff ?? template.backoff,
      timeoutMs: options.timeoutMs ?? template.timeoutMs,
      tags: options.tags ?? template.tags,
    },
  };
}
