import { type JobPriority, priorityOf } from '../jobs/priority.js';
import { type JobView } from '../store/job-store.js';

/** A job as it stands: live, finished, or in the dead letter. */
export interface JobInfo extends Omit<JobView, 'priority'> {
  readonly priority: JobPriority;
}

/** The store's view in the words of users. */
export function jobInfo(view: JobView): JobInfo {
  return { ...view, priority: priorityOf(view.priority) };
}
