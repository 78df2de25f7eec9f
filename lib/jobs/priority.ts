/** The five priorities, lowest first; the index is what the database keeps. */
export const JOB_PRIORITIES = ['lowest', 'low', 'normal', 'high', 'critical'] as const;

/** How urgent a job is. Ageing lifts an overdue job by one level for each `priorityBoost` interval that it waits. */
export type JobPriority = (typeof JOB_PRIORITIES)[number];

/** A priority as the database keeps it: 0 (`lowest`) to 4 (`critical`). */
export type PriorityRank = 0 | 1 | 2 | 3 | 4;

/** The rank that the database keeps for a priority. */
export function rankOf(priority: JobPriority): PriorityRank {
  return JOB_PRIORITIES.indexOf(priority) as PriorityRank;
}

/** The priority of a rank read from the database. */
export function priorityOf(rank: PriorityRank): JobPriority {
  return JOB_PRIORITIES[rank];
}
