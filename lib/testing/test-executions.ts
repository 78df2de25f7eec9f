import { executionEvent, tellSettled } from '../engine/execution-events.js';
import { Executor } from '../engine/executor.js';
import { type RunningExecution } from '../engine/running-execution.js';
import { type ClaimedJob, type LateOutcome, type Settlement } from '../store/job-store.js';
import { type RanJob } from './ran-job.js';
import { type RatchetTesterParts } from './ratchet-tester.js';
import { RecordedFailure } from './recorded-failure.js';
import { endedSoon } from './settled.js';
import { TestingNeedsDatabaseError } from './testing-errors.js';

/** An execution that somebody may cut off. */
interface Cuttable {
  readonly execution: RunningExecution;
  readonly cut: (kind: 'canceled' | 'released') => void;
}

type Parts = Pick<
  RatchetTesterParts,
  | 'source'
  | 'clock'
  | 'settings'
  | 'handlers'
  | 'retryPolicy'
  | 'children'
  | 'messages'
  | 'transactions'
  | 'events'
  | 'nodeId'
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

  /**
   * A transactional handler needs a database: without one the job is given back.
   *
   * @throws TestingNeedsDatabaseError
   */
  async requireRunnable({ id, claimSeq, name }: ClaimedJob): Promise<void> {
    const { handlers, transactions, source } = this.parts;
    const handler = handlers.find(name);
    if (!handler?.transactional || transactions) return;
    await source.settle({ id, claimSeq, outcome: 'released' });
    throw new TestingNeedsDatabaseError(`${handler.owner} is transactional`);
  }

  /** Starts at once; resolves when the outcome is recorded. */
  start(job: ClaimedJob): Promise<RanJob> {
    const { source, clock, settings, handlers, children, retryPolicy, transactions } = this.parts;
    const failure = new RecordedFailure(retryPolicy);
    const reports: Promise<void>[] = [];
    const hooks = {
      onProgress: (report: Parameters<typeof source.report>[0]): void => {
        // One that is lost costs a display, as with the engine; a source that is gone fails the settlement too.
        reports.push(this.turn(() => source.report(report)).catch(() => undefined));
      },
    };
    const executor = new Executor({
      settings,
      handlers,
      clock,
      children,
      retryPolicy: failure,
      ...(transactions ? { transactions } : {}),
      hooks,
    });
    this.#tellStart(job);
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
      this.#tellLost(job, 'canceled');
      execution.abort(kind);
      cut(kind);
    }
  }

  /** Gives back, uncharged, and aborts whatever runs. */
  async release(): Promise<void> {
    for (const { execution, cut } of [...this.#running.values()]) {
      const { id, claimSeq } = execution.job;
      // What may be committing is the database's to decide.
      if (execution.commit === 'pending') continue;
      const settlement: Settlement = { id, claimSeq, outcome: 'released' };
      if (await this.turn(() => this.parts.source.settle(settlement))) {
        this.#tellEnd(execution.job, settlement, undefined);
      }
      execution.abort('shutdown');
      cut('released');
    }
  }

  async #ran(
    execution: RunningExecution,
    cut: Promise<'canceled' | 'released' | 'lost'>,
    ended: Promise<void>,
    { failure, reports }: { failure: RecordedFailure; reports: readonly Promise<void>[] },
  ): Promise<RanJob> {
    const beganMs = this.parts.clock.monotonicMs();
    // A transaction that finds its claim gone settles nothing.
    const lost = ended.then(() => 'lost' as const);
    const settlement = await Promise.race([execution.settlement, cut, lost]);
    await Promise.all(reports);
    if (typeof settlement === 'string') {
      if (settlement === 'lost') this.#tellLost(execution.job, 'claim');
      // What heeds its signal ends now, and its late outcome is recorded before the tester looks.
      await endedSoon(ended);
      return ranJob(execution.job, settlement, undefined, undefined);
    }
    const recorded =
      execution.commit === 'done' || (await this.turn(() => this.parts.source.settle(settlement)));
    if (recorded) {
      this.#tellEnd(execution.job, settlement, this.parts.clock.monotonicMs() - beganMs);
      execution.recorded(settlement);
      // Whoever awaits its result.
      this.parts.messages.signal({ kind: 'ended', jobId: settlement.id });
    } else this.#tellLost(execution.job, 'claim');
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

  #tellStart(job: ClaimedJob): void {
    const { events } = this.parts;
    if (events.heard('claimed')) {
      events.emit('claimed', { ...executionEvent(job, this.#holder), bucket: '', waitedMs: job.waitedMs });
    }
  }

  #tellEnd(job: ClaimedJob, settlement: Settlement, tookMs: number | undefined): void {
    tellSettled(this.parts.events, { job, tookMs }, settlement, this.#holder);
  }

  #tellLost(job: ClaimedJob, reason: 'canceled' | 'claim'): void {
    const { events } = this.parts;
    if (events.heard('lost')) {
      events.emit('lost', { ...executionEvent(job, this.#holder), bucket: '', reason });
    }
  }

  /** The source knows which bucket; for events only the node counts. */
  get #holder(): { id: string; node: { id: string; epoch: string } } {
    return { id: '', node: { id: this.parts.nodeId, epoch: '' } };
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
