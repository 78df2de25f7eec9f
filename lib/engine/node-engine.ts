import { FallbackWatch } from '../buckets/fallback-watch.js';
import { rescuedLine, taken, tellRescued } from '../buckets/rescuer.js';
import { disabledPriorities, lanesOfNode } from '../buckets/lanes-of-node.js';
import { rankOf } from '../jobs/priority.js';
import { failureHandlersOf } from '../jobs/job-failure.js';
import { type Recurring } from '../recurring/recurring.js';
import { type HandlerFilter, type NodeRef } from '../store/job-store.js';
import { Attendants } from './attendants.js';
import { AwaitedEnds } from './awaited-ends.js';
import { Begging } from './begging.js';
import { Cordon } from './cordon.js';
import { type EngineReport } from './engine-snapshot.js';
import { EngineFaults } from './engine-faults.js';
import { type EngineParts } from './engine-parts.js';
import { type LoopEnvironment } from './exchange-loop-parts.js';
import { type ExchangeLoop } from './exchange-loop.js';
import { FailureWakeups } from './failure-wakeups.js';
import { ForeignReport } from './foreign-report.js';
import { LateRecorder } from './late-recorder.js';
import { type LineLogger } from './line-logger.js';
import { NodeBuckets } from './node-buckets.js';
import { NodeRegistration } from './node-registration.js';
import { CalledOff, Patience } from './patience.js';
import { Membership } from './membership.js';
import { Reconciler } from './reconciler.js';
import { recurringOf, schedulesOf } from './recurring-of.js';
import { type ExecutionStarter } from './running-claims.js';
import { Suspects } from './suspects.js';

/**
 * One node: its registration, its buckets, and what serves them all. It is `opening` until it has them, then `serving`, and `leaving`
 * from the first word of a drain on; who it is and which buckets it has may change at any time, and is the business of
 * {@link NodeRegistration} and {@link NodeBuckets}.
 */
export class NodeEngine {
  readonly faults: EngineFaults;
  readonly late: LateRecorder;
  /** That it is to serve. */
  readonly lanes: readonly string[];
  readonly #parts: EngineParts;
  readonly #logger: LineLogger;
  readonly #patience: Patience;
  readonly #registration: NodeRegistration;
  readonly #buckets: NodeBuckets;
  readonly #cordon: Cordon;
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
    const ask = (): void => this.#membership?.beatNow();
    this.#cordon = new Cordon({ ...parts, logger, lanes: () => this.lanes, ask });
    this.#awaited = new AwaitedEnds({ messages: parts.messages, events, clock });
    // One that only drains says of its handlers to nobody, and wakes those who have them.
    const runs = settings.worker === true;
    const known = parts.handlers.all();
    const definitions = runs ? known.map((handler) => handler.definition) : [];
    const failureHandlers = failureHandlersOf(known);
    const wakeups = new FailureWakeups(
      parts.messages,
      failureHandlers.map(({ lane }) => lane),
    );
    events.on('rescued', (report) => wakeups.rescued(report));
    events.on('bucket', ({ bucket, lane, from, to }) =>
      logger.debug?.(`bucket ${bucket} of lane "${lane}": ${from} to ${to}`),
    );
    events.on('coordinator', () => {
      for (const loop of this.loops) loop.repace();
    });
    const lanes = lanesOfNode(settings, runs ? parts.handlers.lanes() : []);
    this.lanes = lanes.map(({ lane }) => lane);
    const foreign = new ForeignReport(clock, logger);
    const begging = new Begging({
      messages: parts.messages,
      clock,
      worthwhile: () => this.#membership?.buffersElsewhere ?? false,
    });
    const environment: LoopEnvironment = {
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
      onHungry: (lane) => begging.beg(lane),
      onForeign: (lane, streams) => foreign.tell(lane, streams),
    };
    this.#registration = new NodeRegistration({
      id: identity.nodeId(),
      row: {
        version,
        lanes: this.lanes,
        handlers: definitions.map(({ name }) => name),
        failureHandlers: runs ? failureHandlers : [],
        schedules: runs ? parts.handlers.schedules().map(({ spec }) => spec.id) : [],
        disabled: disabledPriorities(lanes),
        buffers: lanes.some(({ bufferSize }) => bufferSize > 0),
        graceMs: settings.heartbeat.graceMs,
      },
      cordoned: () => this.#cordon.up,
      store,
      patience: this.#patience,
      events,
      logger,
      onRenamed: (node) => this.#renamed(node),
    });
    this.#buckets = new NodeBuckets({
      lanes,
      concurrency: settings.concurrency,
      environment,
      store,
      events,
      faults: this.faults,
      logger,
      patience: this.#patience,
      registration: this.#registration,
      cordon: this.#cordon,
      held: () => this.#membership?.held === false,
    });
    this.#recurring = runs ? recurringOf(parts, this.faults, logger, environment.executor) : undefined;
    this.#attendants = new Attendants({
      engine: parts,
      faults: this.faults,
      logger,
      loops: () => this.loops,
      recurring: this.#recurring,
      fallback: definitions.length > 0 ? this.#fallbackOf(environment.handlers) : undefined,
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
    return this.#buckets.loops;
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
      slots: this.#parts.settings.concurrency,
      ...this.#buckets.report(),
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
    if (taken(rescued) > 0) {
      this.#logger.warn(
        `an earlier process of node ${node.id} stopped without a drain: ${rescuedLine(rescued)}`,
      );
    }
    await this.#recurring?.register((what, step) => this.#patience.until(what, step), node);
    await this.#buckets.open();
    this.#patience.check();
    this.#patience.insist();
    this.#state = 'serving';
    this.#buckets.serve();
    this.#attendants.attend(this.#registration.node ?? node);
    this.#awaited.start();
    this.#reconciler.start();
  }

  /** No further claim; also ends the waits of {@link NodeEngine.open}. Synchronous. */
  stopClaims(): void {
    this.#state = 'leaving';
    this.#patience.callOff();
    this.#buckets.stopClaims();
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
    const active = this.loops.filter(({ bucket }) => bucket.status === 'active');
    await Promise.all(active.map(({ bucket }) => this.#quietly(() => bucket.moveTo('completing'))));
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
    if (!(await this.#buckets.leave())) return false;
    for (const node of this.#registration.all) await this.#quietly(() => this.#parts.store.removeNode(node));
    return true;
  }

  /** Nothing is asked of the database from now on. Resolves when the heartbeat's connection is closed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#buckets.stop();
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

  #fallbackOf(handlers: readonly HandlerFilter[]): FallbackWatch {
    const { store, clock, events, settings } = this.#parts;
    return new FallbackWatch({
      store,
      clock,
      events,
      host: this.#buckets.fallback,
      handlers,
      afterMs: settings.fallbackAfterMs,
      logger: this.#logger,
      onFault: (error) => void this.faults.failed('the look for lanes that nobody serves', error),
    });
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
      onCordoned: (cordoned) => this.#cordon.heard(cordoned),
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
