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

/** Everything that moves a job. */
export type JobTransition =
  | 'claim'
  | 'succeed'
  | 'fail'
  | 'retry'
  | 'snooze'
  | 'release'
  | 'rescue'
  | 'exhaust'
  | 'cancel'
  | 'pause'
  | 'resume'
  | 'redrive';

/** One line of the table. */
export interface TransitionRule {
  readonly from: readonly JobStatus[];
  readonly to: JobStatus;
  /** Where it goes instead when a pause was asked for while it ran. */
  readonly toIfPaused?: JobStatus;
  /** What it is counted as: failures are retried `maxRetries` times, crashes `maxCrashRedeliveries` times. */
  readonly charge: 'none' | 'failure' | 'crash';
  /** From a running job it cuts off the execution under way: `claim_seq` rises, and whatever that one writes is discarded. */
  readonly fences: boolean;
}

/** The one table of how jobs move. Every status change is one of these; there are no others. */
export const TRANSITIONS: Readonly<Record<JobTransition, TransitionRule>> = {
  claim: { from: ['pending'], to: 'running', charge: 'none', fences: true },
  succeed: { from: ['running'], to: 'succeeded', charge: 'none', fences: false },
  fail: { from: ['running'], to: 'failed', charge: 'failure', fences: false },
  retry: { from: ['running'], to: 'pending', toIfPaused: 'paused', charge: 'failure', fences: false },
  snooze: { from: ['running'], to: 'pending', toIfPaused: 'paused', charge: 'none', fences: false },
  release: { from: ['running'], to: 'pending', toIfPaused: 'paused', charge: 'none', fences: true },
  /** Its node stopped; it is run again. */
  rescue: { from: ['running'], to: 'pending', toIfPaused: 'paused', charge: 'crash', fences: true },
  /** Its node stopped once too often. */
  exhaust: { from: ['running'], to: 'failed', charge: 'crash', fences: true },
  cancel: { from: ['pending', 'running', 'paused'], to: 'canceled', charge: 'none', fences: true },
  /** A running job is only marked: its status changes when its execution gives it back. */
  pause: { from: ['pending'], to: 'paused', charge: 'none', fences: false },
  resume: { from: ['paused'], to: 'pending', charge: 'none', fences: false },
  redrive: { from: ['failed'], to: 'pending', charge: 'none', fences: true },
};

/** The status after a transition; `undefined` when a job in that status cannot make it. */
export function statusAfter(from: JobStatus, transition: JobTransition): JobStatus | undefined {
  const rule = TRANSITIONS[transition];
  return rule.from.includes(from) ? rule.to : undefined;
}
