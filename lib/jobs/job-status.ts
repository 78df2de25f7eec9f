/** What a live job is doing. Index = the `status` column of the live table. */
export const LIVE_STATUSES = ['pending', 'running', 'paused'] as const;
/** How a job ended. */
export const TERMINAL_STATUSES = ['succeeded', 'failed', 'canceled'] as const;

export type LiveJobStatus = (typeof LIVE_STATUSES)[number];
export type TerminalJobStatus = (typeof TERMINAL_STATUSES)[number];
export type JobStatus = LiveJobStatus | TerminalJobStatus;

/** How one execution ended. Only the first, `failed` and `canceled` end the job. */
export type ExecutionOutcome =
  'succeeded' | 'failed' | 'retried' | 'snoozed' | 'released' | 'crashed' | 'canceled';
