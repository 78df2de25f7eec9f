import { Executor } from '../engine/executor.js';
import { type RunningExecution } from '../engine/running-execution.js';
import { type ClaimedJob, type LateOutcome, type Settlement } from '../store/job-store.js';
import { type RanJob } from './ran-job.js';
import { type RatchetTesterParts } from './ratchet-tester.js';
import { RecordedFailure } from './recorded-failure.js';
import { endedSoon } from './settled.js';

/** An execution that somebody may cut off. */
interface Cuttable {
  readonly execution: RunningExecution;
  readonly cut: (kind: 'canceled' | 'released') => void;
}

type Parts = Pick<
  RatchetTesterParts,
  'source' | 'clock' | 'settings' | 'handlers' | 'retryPolicy' | 'children'
>;

/** Runs claimed jobs by the engine's executor and records what became of them. */
export class TestExecutions {
  readonly #running = new Map<string, Cuttable>();

  /** @param turn - does work on the source when its turn has come. */
  constructor(
    private readonly parts: Parts,
    private readonly turn: <T>(work: () => Promise<T>) => Promise<T>,
  ) {}

  get running(): number {
    return this.#running.size;
  }

  /** Starts at once; resolves when the outcome is recorded. */
  start(job: ClaimedJob): Promise<RanJob> {
    const { source, clock, settings, handlers, children, retryPolicy } = this.parts;
    const failure = new RecordedFailure(retryPolicy);
    const reports: Promise<void>[] = [];
    const hooks = {
      onProgress: (report: Parameters<typeof source.report>[0]): void => {
        // One that is lost costs a display, as with the engine; a source that is gone fails the settlement too.
        reports.push(this.turn(() => source.report(report)).catch(() => undefined));
      },
    };
    const executor = new Executor({ settings, handlers, clock, children, retryPolicy: failure, hooks });
    const execution = executor.start(job);
    const cut = new Promise<'canceled' | 'released'>((resolve) => {
      this.#running.set(keyOf(job.id, job.claimSeq), { execution, cut: resolve });
    });
    const ended = this.#ended(execution);
    return this.#ran(execution, cut, ended, { failure, reports });
  }

  /** Aborts an execution whose claim somebody took away. */
  cut(jobId: string, claimSeq: string | undefined, kind: 'canceled'): void {
    for (const [key, { execution, cut }] of this.#running) {
      const { job } = execution;
      if (job.id !== jobId || (claimSeq !== undefined && key !== keyOf(jobId, claimSeq))) continue;
      execution.abort(kind);
      cut(kind);
    }
  }

  /** Gives back, uncharged, and aborts whatever runs. */
  async release(): Promise<void> {
    for (const { execution, cut } of [...this.#running.values()]) {
      const { id, claimSeq } = execution.job;
      await this.turn(() => this.parts.source.settle({ id, claimSeq, outcome: 'released' }));
      execution.abort('shutdown');
      cut('released');
    }
  }

  async #ran(
    execution: RunningExecution,
    cut: Promise<'canceled' | 'released'>,
    ended: Promise<void>,
    { failure, reports }: { failure: RecordedFailure; reports: readonly Promise<void>[] },
  ): Promise<RanJob> {
    const settlement = await Promise.race([execution.settlement, cut]);
    await Promise.all(reports);
    if (typeof settlement === 'string') {
      // What heeds its signal ends now, and its late outcome is recorded before the tester looks.
      await endedSoon(ended);
      return ranJob(execution.job, settlement, undefined, undefined);
    }
    const recorded = await this.turn(() => this.parts.source.settle(settlement));
    if (recorded) execution.recorded(settlement);
    await endedSoon(ended);
    return recorded
      ? ranJob(execution.job, settlement.outcome, settlement, failure.error)
      : ranJob(execution.job, 'lost', undefined, undefined);
  }

  async #ended(execution: RunningExecution): Promise<void> {
    const late = await execution.ended;
    this.#running.delete(keyOf(execution.job.id, execution.job.claimSeq));
    if (late) await this.#record(late);
  }

  /** The source may be closed by now, and then nobody asks. */
  async #record(late: LateOutcome): Promise<void> {
    await this.turn(() => this.parts.source.late(late)).catch(() => undefined);
  }
}

function ranJob(
  job: ClaimedJob,
  outcome: RanJob['outcome'],
  settlement: Settlement | undefined,
  error: unknown,
): RanJob {
  const failed = outcome === 'failed' || outcome === 'retried';
  return {
    id: job.id,
    name: job.name,
    lane: job.lane,
    payload: job.payload,
    execution: job.executions,
    outcome,
    result: settlement?.result === undefined ? undefined : (JSON.parse(settlement.result) as unknown),
    error: failed ? error : undefined,
    againInMs: settlement?.delayMs,
  };
}

function keyOf(id: string, claimSeq: string): string {
  return `${id}/${claimSeq}`;
}
