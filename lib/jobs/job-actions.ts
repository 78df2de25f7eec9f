import { type JobStatus, TRANSITIONS } from './job-status.js';

/** What people do to jobs that are there. */
export type JobAction = 'cancel' | 'pause' | 'resume' | 'redrive' | 'reschedule';

/** Statuses in which a pause is only noted, and counts when the execution gives the job back. */
const MARKED: readonly JobStatus[] = [
  ...new Set(Object.values(TRANSITIONS).flatMap(({ from, toIfPaused }) => (toIfPaused ? from : []))),
];

/** The statuses that each action acts on; jobs in any other it leaves alone. */
export const ACTS_ON: Readonly<Record<JobAction, readonly JobStatus[]>> = {
  cancel: TRANSITIONS.cancel.from,
  pause: [...TRANSITIONS.pause.from, ...MARKED],
  /** Also takes a noted pause back. */
  resume: [...TRANSITIONS.resume.from, ...MARKED],
  redrive: TRANSITIONS.redrive.from,
  /** Whatever still waits: no status changes, only the due time. */
  reschedule: [...TRANSITIONS.claim.from, ...TRANSITIONS.resume.from],
};
