import { ACTS_ON } from '../../jobs/job-actions.js';
import { type ControlAction, type JobQuery, type JobView, type TimeRange } from '../../store/job-store.js';
import { type ListedJob } from './listed-job.js';

/** Whether a query means a job. */
export function matches(job: JobView, query: JobQuery): boolean {
  const { ids, statuses, names, lanes, priorities, tags, businessKeys, parentId } = query;
  return (
    isOneOf(job.id, ids) &&
    isOneOf(job.status, statuses) &&
    isOneOf(job.name, names) &&
    isOneOf(job.lane, lanes) &&
    isOneOf(job.priority, priorities) &&
    isOneOf(job.businessKey, businessKeys) &&
    (tags ?? []).every((tag) => job.tags.includes(tag)) &&
    (parentId === undefined || job.parentId === parentId) &&
    isWithin(job.createdAt, query.created) &&
    isWithin(job.scheduledAt, query.scheduled) &&
    isWithin(job.endedAt, query.ended)
  );
}

/** Whether an action would change a job. A running job can be marked for a pause once, and only then resumed. */
export function isControllable(job: ListedJob, action: ControlAction['kind']): boolean {
  if (!ACTS_ON[action].includes(job.status)) return false;
  if (job.status !== 'running') return true;
  return action === 'pause' ? !job.pauseRequested : action !== 'resume' || job.pauseRequested;
}

function isOneOf<T>(value: T | undefined, allowed: readonly T[] | undefined): boolean {
  return allowed === undefined || (value !== undefined && allowed.includes(value));
}

function isWithin(time: Date | undefined, range: TimeRange | undefined): boolean {
  if (!range) return true;
  if (!time) return false;
  return (!range.from || time >= range.from) && (!range.until || time < range.until);
}
