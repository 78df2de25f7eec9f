import { isDeepStrictEqual } from 'node:util';
import { type ScheduleSpec } from '../jobs/schedule-spec.js';
import { type ScheduleRow, type ScheduleWrite } from '../store/schedule-store.js';
import { type RuleCache } from './rule-cache.js';

/**
 * What registering an annotation writes over the row that stands; undefined: nothing, it says the same. Pure.
 *
 * When it is due next is left as it is unless its times are others: what a deploy or an outage passed over is seen by whoever
 * fires next, and nothing runs because of a deploy. What did not run for a while (removed, disabled, broken) begins afresh.
 * A paused one stays paused.
 */
export function annotatedWrite(
  spec: ScheduleSpec,
  row: ScheduleRow | undefined,
  now: Date,
  rules: RuleCache,
): ScheduleWrite | undefined {
  if (!row) return { spec, revision: undefined, anchor: now, nextAt: firstAt(spec, now, rules) };
  const isWhole = row.fault === undefined && row.removedAt === undefined;
  if (isWhole && saysTheSame(spec, row)) return undefined;
  const { revision, anchor } = row;
  const times = (each: ScheduleSpec): readonly unknown[] => [
    each.expression,
    each.timeZone,
    each.enabled,
    each.scope,
  ];
  if (isWhole && isDeepStrictEqual(times(spec), times(row)))
    return { spec, revision, anchor, nextAt: 'keep' };
  return { spec, revision, anchor: now, nextAt: row.paused ? undefined : firstAt(spec, now, rules) };
}

function firstAt(spec: ScheduleSpec, now: Date, rules: RuleCache): Date | undefined {
  if (!spec.enabled || spec.scope === 'node') return undefined;
  return rules.of(spec).next(now, now);
}

function saysTheSame(spec: ScheduleSpec, row: ScheduleRow): boolean {
  return isDeepStrictEqual(comparable(spec), comparable(row));
}

/** The payload is compared as what it means: the database may write it in another way. */
function comparable({
  id,
  name,
  expression,
  timeZone,
  origin,
  owner,
  template,
  misfire,
  overlap,
  jitterMs,
  scope,
  enabled,
  businessKey,
}: ScheduleSpec): unknown {
  const { name: jobName, version, lane, priority, payload, maxRetries, backoff, timeoutMs, tags } = template;
  return {
    schedule: [id, name, expression, timeZone, origin, owner, misfire, overlap, jitterMs, scope, enabled],
    businessKey,
    template: [jobName, version, lane, priority, JSON.parse(payload), maxRetries, backoff, timeoutMs, tags],
  };
}
