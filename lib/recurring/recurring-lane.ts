import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { rankOf } from '../jobs/priority.js';

/** No lane of jobs: wakeups of it say that a schedule is due earlier than nodes may know. */
export const RECURRING_LANE = '#recurring';

/** Tells all nodes, this one first, that a schedule was made or changed: when it is due, or at once when that is not known. */
export function tellSchedule(messages: ClusterMessages, dueInMs = 0): void {
  messages.newWork(RECURRING_LANE, rankOf('normal'), dueInMs > 0 ? { dueInMs } : {});
}
