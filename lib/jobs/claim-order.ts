import { type PriorityRank } from './priority.js';

/** Beyond this many boost intervals a job rises no further: the oldest then go first. */
export const MAX_BOOSTS = 20;

/**
 * The level at which a due job is claimed: its priority, lifted by one for each `boostMs` that it has waited. Higher goes
 * first, then the earlier due time. The exchange computes the same in SQL; this is its definition.
 *
 * @param overdueMs - how long the job has been due; negative is not due.
 * @param boostMs - 0 lifts nothing.
 */
export function claimOrder(priority: PriorityRank, overdueMs: number, boostMs: number): number {
  if (boostMs <= 0 || overdueMs <= 0) return priority;
  return priority + Math.min(MAX_BOOSTS, Math.floor(overdueMs / boostMs));
}
