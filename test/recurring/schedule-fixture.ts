import { type ScheduleSpec, type JobTemplate } from '../../lib/jobs/schedule-spec.js';

/** What every occurrence of a test's schedule runs. */
export function jobTemplate(overrides: Partial<JobTemplate> = {}): JobTemplate {
  return {
    name: 'work',
    version: 1,
    lane: 'default',
    priority: 2,
    payload: 'null',
    maxRetries: 0,
    backoff: undefined,
    timeoutMs: undefined,
    tags: [],
    ...overrides,
  };
}

/** An hourly schedule of a method. */
export function scheduleSpec(overrides: Partial<ScheduleSpec> & { readonly id: string }): ScheduleSpec {
  return {
    name: overrides.id,
    expression: '0 * * * *',
    timeZone: 'UTC',
    origin: 'annotation',
    owner: `Test.${overrides.id}`,
    template: jobTemplate(),
    misfire: 'once',
    overlap: 'skip',
    jitterMs: 0,
    scope: 'cluster',
    enabled: true,
    businessKey: undefined,
    ...overrides,
  };
}
