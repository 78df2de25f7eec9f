import { type JobTemplate, type ScheduleSpec } from '../../jobs/schedule-spec.js';
import { refuseLongJitter } from '../../recurring/refuse-long-jitter.js';
import { templateOf, withOptions } from '../../recurring/schedule-spec-of.js';
import { parseRule } from '../../recurring/time/recurrence-rule.js';
import { type ReadPatch } from './schedule-arguments.js';

/**
 * The schedule as a patch makes it. Pure.
 *
 * @param payload - JSON text; undefined: it stays.
 * @param version - of that payload.
 * @throws InvalidRecurrenceError, InvalidTimeZoneError, InvalidRecurringOptionError
 */
export function patchedSpec(
  spec: ScheduleSpec,
  patch: ReadPatch,
  payload: string | undefined,
  version: number,
): ScheduleSpec {
  const { source, options, businessKey, clears } = patch;
  const isTimed = source !== undefined || options.timeZone !== undefined;
  const judged =
    isTimed || options.jitterMs !== undefined
      ? parseRule(source ?? spec.expression, options.timeZone ?? spec.timeZone, {
          hashSeed: spec.id,
          owner: patch.label,
        })
      : undefined;
  if (judged) refuseLongJitter(patch.label, options.jitterMs ?? spec.jitterMs, judged);
  const rule = (isTimed && judged) || spec;
  const changed = withOptions(
    { ...spec, template: withJob(spec.template, patch, payload, version) },
    options,
  );
  const { template } = changed;
  return {
    ...changed,
    expression: rule.expression,
    timeZone: rule.timeZone,
    businessKey: businessKey === undefined ? spec.businessKey : (businessKey ?? undefined),
    template: {
      ...template,
      backoff: clears.backoff ? undefined : template.backoff,
      timeoutMs: clears.timeout ? undefined : template.timeoutMs,
    },
  };
}

/** The same job, named for the type of its payload, changes nothing else. */
function withJob(
  template: JobTemplate,
  { job }: ReadPatch,
  payload: string | undefined,
  version: number,
): JobTemplate {
  if (payload === undefined) return template;
  if (!job || job.name === template.name) return { ...template, payload, version };
  return { ...templateOf(job, payload), tags: template.tags };
}
