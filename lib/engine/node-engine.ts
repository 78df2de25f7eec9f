import { type Bucket } from '../buckets/bucket.js';
import { lanesOfNode, type ServedLane } from '../buckets/lanes-of-node.js';
import { Maintenance } from '../maintenance/maintenance.js';
import { type NodeRef } from '../store/job-store.js';
import { EngineFaults } from './engine-faults.js';
import { type EngineParts } from './engine-parts.js';
import { type LoopEnvironment } from './exchange-loop-parts.js';
import { ExchangeLoop } from './exchange-loop.js';
import { ForeignReport } from './foreign-report.js';
import { LaneKeeper } from './lane-keeper.js';
import { LateRecorder } from './late-recorder.js';
import { type LineLogger } from './line-logger.js';
import { NodeRegistration } from './node-registration.js';
import { Patience } from './patience.js';
import { Poller } from './poller.js';
import { Reconciler } from './reconciler.js';
import { Slots } from './slots.js';
import { Suspects } from './suspects.js';

/**
 * One node: its registration, a keeper for each of its lanes, and what serves them all. It is `opening` until every lane has
 * a bucket, then `serving`, and `leaving` from the first word of a drain on; who it is and which buckets it has may change
 * at any time, and is the business of {@link NodeRegistration} and {@link LaneKeeper}.
 */
export class NodeEngine {
  readonly faults: EngineFaults;
  readonly late: LateRecorder;
  readonly #parts: EngineParts;
  readonly #logger: LineLogger;
  readonly #patience: Patience;
  readonly #registration: NodeRegistration;
  readonly #keepers: readonly LaneKeeper[];
  readonly #environment: LoopEnvironment;
  readonly #reconciler: Reconciler;
  #state: 'opening' | 'serving' | 'leaving' = 'opening';
  #poller: Poller | undefined;
  #maintenance: Maintenance | undefined;

  constructor(parts: EngineParts, logger: LineLogger) {
    this.#parts = parts;
    this.#logger = logger;
    const { store, clock, events, debug, settings, executor, identity, version } = parts;
    this.faults = new EngineFaults(clock, logger, events);
    this.late = new LateRecorder(store, events);
    this.#patience = new Patience(clock, this.faults);
    const definitions = parts.handlers.all().map((handler) => handler.definition);
    const lanes = lanesOfNode(
      settings,
      definitions.map(({ lane }) => lane),
    );
    const foreign = new ForeignReport(clock, logger);
    this.#environment = {
      handlers: definitions.map(({ name, version }) => ({ name, version })),
      priorityBoostMs: settings.priorityBoostMs,
      pollIntervalMs: settings.pollIntervalMs,
      store,
      clock,
      events,
      debug,
      faults: this.faults,
      late: this.late,
      executor,
      suspects: new Suspects(() => {
        for (const loop of this.loops) loop.wake();
      }),
      onForeign: (lane, streams) => foreign.tell(lane, streams),
    };
    this.#registration = new NodeRegistration({
      id: identity.nodeId(),
      row: {
        version,
        lanes: lanes.map(({ lane }) => lane),
        handlers: definitions.map(({ name }) => name),
      },
      store,
      patience: this.#patience,
      events,
      logger,
      onRenamed: (node) => this.#renamed(node),
    });
    this.#keepers = lanes.map((served) => this.#keeperOf(served));
    this.#reconciler = new Reconciler({
      store,
      clock,
      events,
      debug,
      faults: this.faults,
      logger,
      loops: () => this.loops,
    });
  }

  /** Undefined until registered. */
  get node(): NodeRef | undefined {
    return this.#registration.node;
  }

  get loops(): readonly ExchangeLoop[] {
    return this.#keepers.flatMap((keeper) => keeper.loops);
  }

  /** Bodies that have not ended. */
  get running(): number {
    return this.loops.reduce((sum, loop) => sum + loop.claims.size, 0);
  }

  /** Outcomes that the database refused, each although it stood alone. */
  get refused(): number {
    return this.loops.reduce((sum, loop) => sum + loop.refused, 0);
  }

  /** Resolves when {@link NodeEngine.open} had to wait: from then on it throws nothing that waiting may mend. */
  get unattended(): Promise<void> {
    return this.#patience.unattended;
  }

  /**
   * Registers, takes back what an earlier process of this id held, opens the buckets, and begins to claim.
   *
   * @throws CalledOff, and, until it has waited for the first time, a fault that no waiting mends.
   */
  async open(): Promise<void> {
    const { debug, store, settings, events } = this.#parts;
    const node = await this.#registration.first();
    await debug.reach('start.registered', node.id);
    const rescued = await this.#patience.until('rescue of own claims', () =>
      store.rescueOwn(node, settings.maxCrashRedeliveries),
    );
    await debug.reach('start.rescued', node.id);
    events.emit('rescued', rescued);
    if (rescued.recovered + rescued.failed > 0) {
      this.#logger.warn(
        `an earlier process of node ${node.id} stopped without a drain: ${rescued.recovered} of its jobs run again, ` +
          `${rescued.failed} were over the crash budget and are in the dead letter`,
      );
    }
    for (const keeper of this.#keepers) await keeper.open();
    this.#patience.check();
    this.#patience.insist();
    this.#state = 'serving';
    for (const keeper of this.#keepers) keeper.serve();
    this.#attend(this.#registration.node ?? node);
    this.#reconciler.start();
  }

  /** No further claim; also ends the waits of {@link NodeEngine.open}. Synchronous. */
  stopClaims(): void {
    this.#state = 'leaving';
    this.#patience.callOff();
    for (const keeper of this.#keepers) keeper.stopClaims();
  }

  /** Stops what acts by itself. Cancel signals are still heard, so that a canceled job does not hold up the drain. */
  async stopTimers(): Promise<void> {
    this.#reconciler.stop();
    await this.#maintenance?.stop();
  }

  stopListening(): void {
    this.#poller?.stop();
  }

  /** Tells the database that this node only finishes. Best effort. */
  async announceDrain(): Promise<void> {
    const { node } = this;
    if (!node) return;
    await this.#quietly(this.#parts.store.setNodeState(node, 'draining'));
    for (const loop of this.loops) {
      if (loop.bucket.status === 'active') await this.#quietly(loop.bucket.moveTo('completing'));
    }
  }

  async whenIdle(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.whenIdle()));
  }

  async whenRecorded(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.whenRecorded()));
  }

  /** Gives back what is unfinished, and what was refused. Returns how many were unfinished. */
  release(): number {
    return this.loops.reduce((sum, loop) => sum + loop.release(), 0);
  }

  abort(): void {
    for (const loop of this.loops) loop.claims.abortAll('shutdown');
  }

  /** The bodies that obey their signal have ended. */
  async whenEnded(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.claims.whenEmpty()));
    await this.late.settled();
  }

  /** Removes what the database knows of this node. What could not be recorded stays there for the next process of this id. */
  async leave(): Promise<boolean> {
    const left = await Promise.all(this.#keepers.map((keeper) => keeper.leave()));
    if (left.includes(false)) return false;
    for (const node of this.#registration.all) await this.#quietly(this.#parts.store.removeNode(node));
    return true;
  }

  /** Nothing is asked of the database from now on. */
  stop(): void {
    for (const keeper of this.#keepers) keeper.stop();
    this.late.close();
  }

  #keeperOf({ lane, concurrency }: ServedLane): LaneKeeper {
    // Shared by the buckets that follow each other: bodies that do not heed their signal keep their slots.
    const slots = new Slots(concurrency);
    const { store, events } = this.#parts;
    return new LaneKeeper({
      lane,
      store,
      events,
      faults: this.faults,
      logger: this.#logger,
      patience: this.#patience,
      registration: this.#registration,
      loopOf: (bucket, onDeposed) => this.#loopOf(bucket, slots, onDeposed),
    });
  }

  #loopOf(bucket: Bucket, slots: Slots, onDeposed: () => void): ExchangeLoop {
    return new ExchangeLoop({
      ...this.#environment,
      bucket,
      slots,
      releaseError: `node ${bucket.ref.node.id} shut down; job released`,
      onDeposed,
    });
  }

  /** What acts in the name of the node, for as long as it has that name. */
  #attend(node: NodeRef): void {
    const { store, locks, messages, clock, events, settings } = this.#parts;
    this.#poller?.stop();
    this.#poller = new Poller({
      node,
      store,
      messages,
      clock,
      events,
      faults: this.faults,
      pollIntervalMs: settings.pollIntervalMs,
      loops: () => this.loops,
    });
    this.#poller.start();
    void this.#maintenance?.stop();
    this.#maintenance = new Maintenance({
      node,
      store,
      locks,
      clock,
      events,
      retention: {
        historyMs: settings.retention.historyMs,
        executionMs: settings.retention.executionsMs,
        deadLetterMs: settings.retention.deadLetterMs,
      },
      maxCrashRedeliveries: settings.maxCrashRedeliveries,
      logger: this.#logger,
      onError: (task, error) => void this.faults.failed(task, error),
    });
    this.#maintenance.start();
  }

  #renamed(node: NodeRef): void {
    if (this.#state !== 'serving') return;
    this.#attend(node);
    // The other process takes the old buckets one by one. Which ones, the database says; those that are ours still go on.
    void this.#reconciler.runOnce();
  }

  async #quietly(work: Promise<unknown>): Promise<void> {
    await work.catch((error: unknown) => void this.faults.failed('drain', error));
  }
}
