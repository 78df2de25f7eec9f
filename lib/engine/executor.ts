import { Logger } from '@nestjs/common';
import { type Clock } from '../cluster/clock.js';
import { TransactionalNeedsDataSourceError } from '../errors/transaction-errors.js';
import { type ChildIntake } from '../jobs/child-intake.js';
import { type HandlerRegistry, type RegisteredHandler } from '../jobs/handler-registry.js';
import { type RetryPolicy } from '../jobs/retry-policy.js';
import { type ClaimedJob } from '../store/job-store.js';
import { type EngineSettings } from './engine-settings.js';
import { Execution } from './execution.js';
import { ExecutionContext, TransactionalExecutionContext } from './execution-context.js';
import { ExecutionLog } from './execution-log.js';
import { ExecutionOutcome, type ExecutionRules } from './execution-outcome.js';
import { ExecutionProgress } from './execution-progress.js';
import { NodeRunContext } from './node-run-context.js';
import { type ExecutorHooks, type RunningExecution } from './running-execution.js';
import { type HandlerTransaction } from './transactions/handler-transaction.js';
import { type HandlerTransactions } from './transactions/handler-transactions.js';

export interface ExecutorParts {
  readonly settings: Pick<EngineSettings, 'maxRetries' | 'backoff' | 'limits'>;
  readonly handlers: HandlerRegistry;
  readonly retryPolicy: RetryPolicy;
  readonly clock: Clock;
  readonly children: ChildIntake;
  /** For transactional handlers; without it they fail. */
  readonly transactions?: Pick<HandlerTransactions, 'begin'>;
  readonly hooks: ExecutorHooks;
}

/** A job that came to a node without its handler tries again after this long, on whatever node claims it then. */
const NO_HANDLER_DELAY_MS = 30_000;

/**
 * Runs claimed jobs: decodes the payload, calls the handler, and makes of what it does the settlement to record. It knows
 * no store and no loop, so that the test kit runs jobs by the same code.
 */
export class Executor {
  readonly #logger = new Logger('RatchetExecutor');
  readonly #parts: ExecutorParts;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
  }

  /** Starts one execution. Never throws; nothing that the handler does escapes it. */
  start(job: ClaimedJob): RunningExecution {
    const { handlers, clock, children, hooks, retryPolicy } = this.#parts;
    const log = new ExecutionLog(this.#logger, job);
    const handler = handlers.find(job.name);
    if (!handler) return this.#withoutHandler(job, log);
    const rules = this.#rulesOf(job, handler);
    const report = (value: string): void => hooks.onProgress({ id: job.id, claimSeq: job.claimSeq, value });
    const progress = new ExecutionProgress(clock, report, log);
    const parts = {
      job,
      handler,
      progress,
      outcome: new ExecutionOutcome(job, rules, retryPolicy, log),
      timeoutMs: rules.timeoutMs,
      clock,
      log,
    };
    const contextParts = { job, children, progress, log };
    if (!handler.transactional) {
      const Context = handler.ofNode ? NodeRunContext : ExecutionContext;
      return new Execution({ ...parts, context: new Context(contextParts) });
    }
    const context = new TransactionalExecutionContext(contextParts);
    const begin = this.#beginning(job, handler);
    return new Execution({ ...parts, context, transactional: { context, begin } });
  }

  #beginning(
    job: ClaimedJob,
    handler: RegisteredHandler,
  ): (signal: AbortSignal) => Promise<HandlerTransaction | undefined> {
    const { transactions } = this.#parts;
    return async (signal) => {
      if (!transactions) throw new TransactionalNeedsDataSourceError([handler.owner]);
      return transactions.begin(job, handler, signal);
    };
  }

  #rulesOf(job: ClaimedJob, { definition }: RegisteredHandler): ExecutionRules {
    const { settings } = this.#parts;
    return {
      maxRetries: job.maxRetries ?? definition.maxRetries ?? settings.maxRetries,
      backoff: job.backoff ?? definition.backoff ?? settings.backoff,
      timeoutMs: job.timeoutMs ?? definition.timeoutMs,
      drop: definition.history === 'drop',
      resultBytes: settings.limits.resultBytes,
      errorBytes: settings.limits.errorBytes,
    };
  }

  /** Claims ask for the handlers that a node has, so this is a fault; it must cost the job nothing and must not spin. */
  #withoutHandler(job: ClaimedJob, log: ExecutionLog): RunningExecution {
    log.warn(`this node has no handler for it; given back for ${NO_HANDLER_DELAY_MS / 1_000} s`);
    return {
      job,
      settlement: Promise.resolve({
        id: job.id,
        claimSeq: job.claimSeq,
        outcome: 'snoozed',
        delayMs: NO_HANDLER_DELAY_MS,
      }),
      ended: Promise.resolve(undefined),
      commit: undefined,
      recorded: () => undefined,
      abort: () => undefined,
      handedBack: () => undefined,
    };
  }
}
