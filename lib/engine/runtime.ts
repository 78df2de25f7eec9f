import { counted } from '../errors/counted.js';
import {
  Logger,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleDestroy,
} from '@nestjs/common';
import { within } from '../cluster/within.js';
import { describeError } from '../errors/describe-error.js';
import { showValue } from '../errors/show-value.js';
import { type Duration, durationMs } from '../jobs/duration.js';
import { type DrainStep } from '../observability/engine-events.js';
import { type RatchetSnapshot } from '../observability/ratchet-snapshot.js';
import { DrainSignals } from './drain-signals.js';
import { type EngineParts } from './engine-parts.js';
import { engineSnapshot } from './engine-snapshot.js';
import { watchRejections } from './execution-rejections.js';
import { guardedLogger } from './line-logger.js';
import { NodeEngine } from './node-engine.js';
import { CalledOff } from './patience.js';

/** What a {@link RatchetRuntime} is doing. `draining` begins at once and never goes back. */
export type RuntimeState = 'idle' | 'starting' | 'running' | 'draining' | 'drained' | 'closed';

export interface DrainOptions {
  /** How long running jobs may take to finish. @defaultValue the module option `drainTimeout` */
  readonly timeout?: Duration;
}

/** What follows the timeout is bounded too: about five seconds in all, also while the database is away. */
const RELEASE_MS = 3_000;
const HEED_MS = 500;
const LEAVE_MS = 1_000;
const HEARTBEAT_MS = 2_000;
const CLOSE_MS = 1_500;

/**
 * Starts, drains and closes the engine of this process: the only owner of its loops. Nest calls it by its hooks; call
 * {@link RatchetRuntime.drain} yourself, before `app.close()`, when jobs use clients that other modules close in
 * `onModuleDestroy`.
 *
 * Shutdown, in order, each step logged: no further claims; own timers stop; enqueued jobs are saved; running executions may
 * finish within the timeout; what is left is given back uncharged; then its signals are aborted; the node's rows are removed;
 * connections close. Every method tolerates being called twice, too early, or during another.
 */
export class RatchetRuntime implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  readonly #logger = guardedLogger(new Logger('RatchetRuntime'));
  readonly #parts: EngineParts;
  #state: RuntimeState = 'idle';
  #engine: NodeEngine | undefined;
  #opening: Promise<void> = Promise.resolve();
  #startFault: string | undefined;
  #signals: DrainSignals | undefined;
  #starting: Promise<void> | undefined;
  #draining: Promise<void> | undefined;
  #closing: Promise<void> | undefined;
  #announced: Promise<void> = Promise.resolve();
  readonly #drained: Promise<void>;
  #tellDrained: () => void = () => {};
  #unwatchRejections: () => void = () => {};

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#drained = new Promise((resolve) => (this.#tellDrained = resolve));
  }

  get state(): RuntimeState {
    return this.#state;
  }

  /** Executions whose handlers have not returned. */
  get running(): number {
    return this.#engine?.running ?? 0;
  }

  /** What {@link RatchetMonitor.snapshot} returns. Asks nobody and never throws. */
  snapshot(): RatchetSnapshot {
    const { state, running } = this;
    return engineSnapshot(
      this.#parts,
      { state, running, startFault: this.#startFault },
      this.#engine?.report(),
    );
  }

  /** Resolves when a drain, whoever began it, is over. */
  drained(): Promise<void> {
    return this.#drained;
  }

  onApplicationBootstrap(): Promise<void> {
    return this.start();
  }

  onModuleDestroy(): void {
    this.beginDrain();
  }

  onApplicationShutdown(): Promise<void> {
    return this.close();
  }

  /**
   * Registers the node and begins to claim; with `worker: 'drain'` it only looks after others, with `worker: false` it does
   * nothing. When the database is away it returns after the first failed try and goes on in the background: the application
   * must be able to boot and to say so.
   *
   * @throws what the database says when no waiting mends it (a missing grant, a dropped table).
   */
  start(): Promise<void> {
    if (this.#state === 'idle') this.#starting = this.#start();
    return this.#starting ?? Promise.resolve();
  }

  /** Stops claiming, at once and synchronously. Running executions go on. */
  beginDrain(): void {
    if (this.#state !== 'idle' && this.#state !== 'starting' && this.#state !== 'running') return;
    this.#state = 'draining';
    const engine = this.#engine;
    if (!engine) return;
    this.#signals = new DrainSignals();
    engine.stopClaims();
    this.#step('claims', 0);
    this.#announced = engine.announceDrain();
  }

  /**
   * Stops politely: running executions may finish within the timeout, the rest is given back uncharged and aborted.
   * Never rejects. A second call waits for the first, whatever its timeout.
   */
  drain(options: DrainOptions = {}): Promise<void> {
    this.beginDrain();
    this.#draining ??= this.#drain(this.#timeoutMs(options.timeout));
    return this.#draining;
  }

  /** Drains if nobody has, then closes what the engine opened. Bounded by the drain's timeout and about five seconds. Never rejects. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** A drain must not fail for a misspelt timeout: it is told, and the default counts. */
  #timeoutMs(timeout: Duration | undefined): number {
    const { drainTimeoutMs } = this.#parts.settings;
    if (timeout === undefined) return drainTimeoutMs;
    const ms = durationMs(timeout);
    if (ms === undefined) {
      this.#logger.error(
        `drain: timeout ${showValue(timeout)} is no duration (milliseconds or '30s'); ${drainTimeoutMs} ms count`,
      );
    }
    return ms ?? drainTimeoutMs;
  }

  async #start(): Promise<void> {
    if (!this.#parts.settings.worker) {
      this.#state = 'running';
      return;
    }
    this.#state = 'starting';
    this.#unwatchRejections = watchRejections(this.#logger);
    const engine = new NodeEngine(this.#parts, this.#logger);
    this.#engine = engine;
    const opening = engine
      .open()
      .then(() => this.#opened(engine))
      .catch((error: unknown) => {
        if (!(error instanceof CalledOff)) throw error;
      });
    this.#opening = opening;
    await Promise.race([opening, engine.unattended]);
    // Nest has been told that the boot is done: all that is left is to say it.
    void opening.catch((error: unknown) => {
      this.#startFault = describeError(error).message;
      this.#logger.error(`the node could not begin: ${this.#startFault}`);
    });
  }

  #opened(engine: NodeEngine): void {
    if (this.#state !== 'starting') return;
    this.#state = 'running';
    const { lanes } = engine;
    if (this.#parts.settings.worker === 'drain') {
      this.#logger.log(
        `node ${engine.node?.id ?? ''} (epoch ${engine.node?.epoch ?? ''}) takes back the work of nodes that stopped, and runs nothing`,
      );
      return;
    }
    if (lanes.length === 0) {
      // What each node runs for itself needs no lane.
      if (this.#parts.handlers.schedules().length > 0) return;
      this.#logger.warn(`node ${engine.node?.id ?? ''} has no @Job handler: it enqueues, but runs nothing`);
      return;
    }
    this.#logger.log(
      `node ${engine.node?.id ?? ''} (epoch ${engine.node?.epoch ?? ''}) serves ${lanes.join(', ')}`,
    );
  }

  async #drain(timeoutMs: number): Promise<void> {
    const signals = this.#signals;
    signals?.awaited();
    try {
      if (this.#engine && signals) await this.#drainEngine(this.#engine, timeoutMs, signals);
      else await this.#flush(timeoutMs);
    } catch (error) {
      this.#logger.error(`shutdown: ${describeError(error).message}; going on`);
    } finally {
      this.#parts.intake?.abandon();
      this.#state = 'drained';
      this.#tellDrained();
      signals?.end();
    }
  }

  async #drainEngine(engine: NodeEngine, timeoutMs: number, signals: DrainSignals): Promise<void> {
    const { clock, debug } = this.#parts;
    const beganMs = clock.monotonicMs();
    // A start in progress stops at its next step.
    await within(clock, LEAVE_MS, this.#opening);
    void engine.stopTimers();
    this.#step('timers', beganMs);
    // First of all: what is only in memory is lost with the process.
    await this.#flush(timeoutMs, signals.hurried);
    this.#step('intake', beganMs);
    const leftMs = Math.max(0, timeoutMs - (clock.monotonicMs() - beganMs));
    await within(clock, leftMs, Promise.race([engine.whenIdle(), signals.hurried]));
    this.#step('wait', beganMs);
    await debug.reach('drain.releasing', engine.node?.id ?? '');
    this.#release(engine, beganMs, signals.heard);
    // Handlers may have enqueued since.
    const flushing = this.#flush(RELEASE_MS);
    const recorded = await within(clock, RELEASE_MS, engine.whenRecorded());
    await flushing;
    this.#step('release', beganMs);
    engine.abort();
    if (engine.running > 0 && recorded) await within(clock, HEED_MS, engine.whenEnded());
    if (recorded) await this.#flush(HEED_MS);
    this.#step('abort', beganMs);
    engine.stopListening();
    await this.#leave(engine);
    this.#step('deregister', beganMs);
  }

  /** Saves what enqueues have left in memory. Cut short by the timeout, and by a hurry. */
  async #flush(timeoutMs: number, hurried?: Promise<void>): Promise<void> {
    const { intake, clock } = this.#parts;
    if (!intake) return;
    const flushed = intake.flush();
    await within(clock, timeoutMs, hurried ? Promise.race([flushed, hurried]) : flushed);
  }

  #release(engine: NodeEngine, beganMs: number, signal: string | undefined): void {
    const { refused } = engine;
    const left = engine.release();
    if (left > 0)
      this.#logger.warn(
        `${counted(left, 'execution')} did not finish within ${Math.round(this.#parts.clock.monotonicMs() - beganMs)} ms${signal ? ` (${signal} ended the wait)` : ''}: given back, uncharged`,
      );
    if (refused > 0)
      this.#logger.error(
        `the database refuses to record ${counted(refused, 'outcome')} (see the lines before): their jobs are given back and run again`,
      );
  }

  async #leave(engine: NodeEngine): Promise<void> {
    const leaving = this.#announced.then(() => engine.leave());
    const clean = (await within(this.#parts.clock, LEAVE_MS, leaving)) && (await leaving);
    if (clean) return;
    this.#logger.warn(
      `not everything of node ${engine.node?.id ?? ''} could be recorded: its jobs come back when a node of this id starts again, or when another finds it silent for longer than the grace, charged as after a crash`,
    );
  }

  async #close(): Promise<void> {
    const { clock, resources, coordinator, store } = this.#parts;
    await this.drain();
    const beganMs = clock.monotonicMs();
    if (this.#engine) await within(clock, HEARTBEAT_MS, this.#engine.stop());
    for (const resource of resources ?? [coordinator, store]) {
      await within(clock, CLOSE_MS, this.#closeOne(resource));
    }
    this.#state = 'closed';
    if (!this.#engine) return;
    this.#step('close', beganMs);
    // A body that outlives the drain may still leave a promise behind.
    void this.#engine.whenEnded().then(this.#unwatchRejections);
  }

  /** One that cannot be closed must not keep the others open. */
  async #closeOne(resource: { close(): Promise<void> }): Promise<void> {
    try {
      await resource.close();
    } catch (error) {
      this.#logger.warn(`shutdown: ${describeError(error).message}; going on`);
    }
  }

  #step(step: DrainStep, beganMs: number): void {
    const { clock, events } = this.#parts;
    const tookMs = beganMs === 0 ? 0 : Math.round(clock.monotonicMs() - beganMs);
    events.emit('drain', { step, running: this.running, tookMs });
    this.#logger.log(`shutdown: ${STEP_LINES[step]} (${this.running} running, ${tookMs} ms)`);
  }
}

const STEP_LINES: Record<DrainStep, string> = {
  claims: 'no further claims',
  timers: 'own timers stopped',
  intake: 'what was enqueued is saved',
  wait: 'waited for running executions',
  release: 'the rest is given back',
  abort: 'the rest is aborted',
  deregister: 'the node has left',
  close: 'connections closed',
};
