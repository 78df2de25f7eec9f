import { counted } from '../errors/counted.js';
import { tellRescued } from '../buckets/rescuer.js';
import { type Bucket } from '../buckets/bucket.js';
import { disabledPriorities, lanesOfNode, type ServedLane } from '../buckets/lanes-of-node.js';
import { rankOf } from '../jobs/priority.js';
import { failureHandlersOf } from '../jobs/job-failure.js';
import { type Recurring } from '../recurring/recurring.js';
import { type NodeRef } from '../store/job-store.js';
import { Attendants } from './attendants.js';
import { AwaitedEnds } from './awaited-ends.js';
import { type EngineReport } from './engine-snapshot.js';
import { EngineFaults } from './engine-faults.js';
import { type EngineParts } from './engine-parts.js';
import { type LoopEnvironment } from './exchange-loop-parts.js';
import { ExchangeLoop } from './exchange-loop.js';
import { FailureWakeups } from './failure-wakeups.js';
import { ForeignReport } from './foreign-report.js';
import { LaneKeeper } from './lane-keeper.js';
import { LateRecorder } from './late-recorder.js';
import { type LineLogger } from './line-logger.js';
import { NodeRegistration } from './node-registration.js';
import { CalledOff, Patience } from './patience.js';
import { Membership } from './membership.js';
import { Reconciler } from './reconciler.js';
import { recurringOf, schedulesOf } from './recurring-of.js';
import { type ExecutionStarter } from './running-claims.js';
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
  /** Names of the handlers that began since the last look. */
  readonly #begun = new Set<string>();
  #state: 'opening' | 'serving' | 'leaving' = 'opening';
  readonly #awaited: AwaitedEnds;
  readonly #recurring: Recurring | undefined;
  readonly #attendants: Attendants;
  #membership: Membership | undefined;
  #stopped = false;

  constructor(parts: EngineParts, logger: LineLogger) {
    this.#parts = parts;
    this.#logger = logger;
    const { store, clock, events, debug, settings, executor, identity, version } = parts;
    this.faults = new EngineFaults(clock, logger, events);
    this.late = new LateRecorder(store, events);
    this.#patience = new Patience(clock, this.faults);
    this.#awaited = new AwaitedEnds({ messages: parts.messages, events, clock });
    const handlers = parts.handlers.all();
    const definitions = handlers.map((handler) => handler.definition);
    const failureHandlers = failureHandlersOf(handlers);
    const wakeups = new FailureWakeups(
      parts.messages,
      failureHandlers.map(({ lane }) => lane),
    );
    events.on('rescued', (report) => wakeups.rescued(report));
    events.on('coordinator', () => {
      for (const loop of this.loops) loop.repace();
    });
    const lanes = lanesOfNode(settings, settings.worker === 'drain' ? [] : parts.handlers.lanes());
    const foreign = new ForeignReport(clock, logger);
    this.#environment = {
      handlers: definitions.map(({ name, version }) => ({ name, version })),
      priorityBoostMs: settings.priorityBoostMs,
      poll: settings.poll,
      wakeupsExpected: () => parts.messages.connected,
      store,
      clock,
      events,
      debug,
      faults: this.faults,
      late: this.late,
      executor: (hooks) => this.#remembering(executor(hooks)),
      suspects: new Suspects(() => {
        for (const loop of this.loops) loop.wake();
      }),
      onSpawned: (jobs, tookMs) => wakeups.spawned(jobs, tookMs),
      onHandedOver: (lane, dueInMs) =>
        parts.messages.newWorkElsewhere(
          lane,
          rankOf('normal'),
          dueInMs === undefined ? { behind: true } : { dueInMs },
        ),
      onForeign: (lane, streams) => foreign.tell(lane, streams),
    };
    this.#registration = new NodeRegistration({
      id: identity.nodeId(),
      row: {
        version,
        lanes: lanes.map(({ lane }) => lane),
        handlers: definitions.map(({ name }) => name),
        failureHandlers,
        schedules: parts.handlers.schedules().map(({ spec }) => spec.id),
        disabled: disabledPriorities(lanes),
        graceMs: settings.heartbeat.graceMs,
      },
      store,
      patience: this.#patience,
      events,
      logger,
      onRenamed: (node) => this.#renamed(node),
    });
    this.#keepers = lanes.map((served) => this.#keeperOf(served));
    this.#recurring = recurringOf(parts, this.faults, logger, this.#environment.executor);
    this.#attendants = new Attendants({
      engine: parts,
      faults: this.faults,
      logger,
      loops: () => this.loops,
      recurring: this.#recurring,
      schedules: schedulesOf(parts),
      beatNow: () => this.#membership?.beatNow(),
    });
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
    return this.loops.reduce((sum, loop) => sum + loop.claims.size, this.#recurring?.running ?? 0);
  }

  /** Outcomes that the database refused, each although it stood alone. */
  get refused(): number {
    return this.loops.reduce((sum, loop) => sum + loop.refused, 0);
  }

  /** What it knows of itself; asks nobody. */
  report(): EngineReport {
    const { node } = this;
    return {
      node: node && { id: node.id, epoch: node.epoch },
      lanes: this.#keepers.map((keeper) => keeper.report()),
      faults: this.faults.report(),
      ...this.#membership?.report(),
      ...this.#attendants.report(),
    };
  }

  /** Resolves when {@link NodeEngine.open} had to wait: from then on it throws nothing that waiting may mend. */
  get unattended(): Promise<void> {
    return this.#patience.unattended;
  }

  /**
   * Registers the node and its schedules, takes back what an earlier process of this id held, opens the buckets, and begins to claim.
   *
   * @throws CalledOff, and, until it has waited for the first time, a fault that no waiting mends: then nothing of the node is left.
   */
  async open(): Promise<void> {
    try {
      await this.#open();
    } catch (error) {
      if (!(error instanceof CalledOff)) await this.#abandon();
      throw error;
    }
  }

  async #open(): Promise<void> {
    const { debug, store, settings, events } = this.#parts;
    const node = await this.#registration.first();
    this.#membership = await this.#join(node);
    await debug.reach('start.registered', node.id);
    const rescued = await this.#patience.until('rescue of own claims', () =>
      store.rescueOwn(node, settings.maxCrashRedeliveries),
    );
    await debug.reach('start.rescued', node.id);
    tellRescued(events, rescued);
    if (rescued.recovered + rescued.failed > 0) {
      this.#logger.warn(
        `an earlier process of node ${node.id} stopped without a drain: ${counted(rescued.recovered, 'job')} to run again, ` +
          `${rescued.failed} over the crash budget and in the dead letter`,
      );
    }
    await this.#recurring?.register((what, step) => this.#patience.until(what, step), node);
    for (const keeper of this.#keepers) await keeper.open();
    this.#patience.check();
    this.#patience.insist();
    this.#state = 'serving';
    for (const keeper of this.#keepers) keeper.serve();
    this.#attendants.attend(this.#registration.node ?? node);
    this.#awaited.start();
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
    await Promise.all([this.#attendants.stopTimers(), this.#membership?.stopRescue()]);
  }

  stopListening(): void {
    this.#attendants.stopListening();
  }

  /** Tells the database that this node only finishes. Best effort. */
  async announceDrain(): Promise<void> {
    const { node } = this;
    if (!node) return;
    await this.#quietly(() => this.#parts.store.setNodeState(node, 'draining'));
    for (const loop of this.loops) {
      if (loop.bucket.status === 'active') await this.#quietly(() => loop.bucket.moveTo('completing'));
    }
  }

  async whenIdle(): Promise<void> {
    await Promise.all([...this.loops.map((loop) => loop.whenIdle()), this.#recurring?.whenIdle()]);
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
    this.#recurring?.abort();
  }

  /** The bodies that obey their signal have ended. */
  async whenEnded(): Promise<void> {
    await Promise.all([...this.loops.map((loop) => loop.claims.whenEmpty()), this.#recurring?.whenIdle()]);
    await this.late.settled();
  }

  /** Removes what the database knows of this node. What could not be recorded stays there for the next process of this id. */
  async leave(): Promise<boolean> {
    // Its thread may take a while to end, on a connection that is away; what it hears from now on counts for nothing.
    void this.#membership?.stop();
    if (this.#stopped) return false;
    const left = await Promise.all(this.#keepers.map((keeper) => keeper.leave()));
    if (left.includes(false)) return false;
    for (const node of this.#registration.all) await this.#quietly(() => this.#parts.store.removeNode(node));
    return true;
  }

  /** Nothing is asked of the database from now on. Resolves when the heartbeat's connection is closed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const keeper of this.#keepers) keeper.stop();
    this.late.close();
    this.#awaited.stop();
    await this.#membership?.stop();
  }

  /** A process that lives on without its node must not look like one that serves. */
  async #abandon(): Promise<void> {
    this.stopClaims();
    this.stopListening();
    await Promise.all([this.stopTimers(), this.leave()]);
  }

  #keeperOf({ lane, concurrency }: ServedLane): LaneKeeper {
    // Shared by the buckets that follow each other: bodies that do not heed their signal keep their slots.
    const slots = new Slots(concurrency);
    const { store, events } = this.#parts;
    return new LaneKeeper({
      lane,
      concurrency,
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
    const loop = new ExchangeLoop({
      ...this.#environment,
      bucket,
      slots,
      bufferSize: 0,
      onCompleting: () => {},
      releaseError: `node ${bucket.ref.node.id} shut down; job released`,
      onDeposed,
    });
    if (this.#membership?.held === false) loop.hold(true);
    return loop;
  }

  /** From the registration on: what follows may take longer than the grace. */
  async #join(node: NodeRef): Promise<Membership> {
    const { store, beater, settings, clock, events, messages } = this.#parts;
    const membership = new Membership(node, {
      store,
      beater: await beater(),
      settings,
      clock,
      events,
      faults: this.faults,
      logger: this.#logger,
      messages,
      loops: () => this.loops,
      begun: () => {
        const names = [...this.#begun];
        this.#begun.clear();
        return names;
      },
      onNotices: (notices) => this.#attendants.noticed(notices),
      onScheduled: (inMs) => this.#recurring?.dueIn(inMs),
      onLease: (held) => this.#recurring?.hold(!held),
      onDead: (dead) => {
        this.#registration.instead(dead, undefined).catch((error: unknown) => {
          if (!(error instanceof CalledOff)) this.faults.failed('registration', error);
        });
      },
    });
    membership.start();
    return membership;
  }

  /** For the report of a blocked event loop. */
  #remembering(starter: ExecutionStarter): ExecutionStarter {
    return {
      start: (job) => {
        this.#begun.add(job.name);
        return starter.start(job);
      },
    };
  }

  #renamed(node: NodeRef): void {
    this.#membership?.rename(node);
    if (this.#state !== 'serving') return;
    this.#attendants.attend(node);
    this.#recurring
      ?.restore((what, step) => this.#patience.until(what, step))
      .catch((error: unknown) => {
        if (!(error instanceof CalledOff)) this.faults.failed('registration of schedules', error);
      });
    // They have no owner any more: whoever looks first takes them back.
    for (const loop of this.loops) if (loop.bucket.ref.node.epoch !== node.epoch) loop.depose();
  }

  /** Not at all once the node has stopped: the store may be closed. */
  async #quietly(work: () => Promise<unknown>): Promise<void> {
    if (this.#stopped) return;
    await work().catch((error: unknown) => {
      if (!this.#stopped) this.faults.failed('drain', error);
    });
  }
}
