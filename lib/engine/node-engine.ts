import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Bucket } from '../buckets/bucket.js';
import { lanesOfNode, type ServedLane } from '../buckets/lanes-of-node.js';
import { describeError } from '../errors/describe-error.js';
import { Maintenance } from '../maintenance/maintenance.js';
import { type NodeRef } from '../store/job-store.js';
import { EngineFaults, type LineLogger } from './engine-faults.js';
import { type EngineParts } from './engine-parts.js';
import { type LoopEnvironment } from './exchange-loop-parts.js';
import { ExchangeLoop } from './exchange-loop.js';
import { ForeignReport } from './foreign-report.js';
import { LateRecorder } from './late-recorder.js';
import { CalledOff, Patience } from './patience.js';
import { Poller } from './poller.js';
import { Reconciler } from './reconciler.js';
import { Slots } from './slots.js';
import { Suspects } from './suspects.js';

/** Longest id that the node table takes. */
const MOST_ID_LENGTH = 64;

/**
 * One registered node: its buckets, their loops, and what serves them. It is opened once and replaces what others take
 * away: a bucket by a new one, a node id that another process registered by an id of its own, because two live processes
 * that both insisted on one id would depose each other for ever.
 */
export class NodeEngine {
  readonly faults: EngineFaults;
  readonly late: LateRecorder;
  readonly #parts: EngineParts;
  readonly #logger: LineLogger;
  readonly #patience: Patience;
  readonly #lanes: readonly ServedLane[];
  readonly #slots = new Map<string, Slots>();
  readonly #loops = new Set<ExchangeLoop>();
  readonly #environment: LoopEnvironment;
  readonly #reconciler: Reconciler;
  #node: NodeRef | undefined;
  #poller: Poller | undefined;
  #maintenance: Maintenance | undefined;
  #leaving = false;
  #renaming: Promise<void> | undefined;

  constructor(parts: EngineParts, logger: LineLogger) {
    this.#parts = parts;
    this.#logger = logger;
    const { store, clock, events, debug, settings, executor } = parts;
    this.faults = new EngineFaults(clock, logger, events);
    this.late = new LateRecorder(store, events);
    this.#patience = new Patience(clock, this.faults);
    const definitions = parts.handlers.all().map((handler) => handler.definition);
    this.#lanes = lanesOfNode(
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
        for (const loop of this.#loops) loop.wake();
      }),
      onForeign: (lane, streams) => foreign.tell(lane, streams),
    };
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
    return this.#node;
  }

  get loops(): readonly ExchangeLoop[] {
    return [...this.#loops];
  }

  /** Bodies that have not ended. */
  get running(): number {
    return this.loops.reduce((sum, loop) => sum + loop.claims.size, 0);
  }

  /**
   * Registers, takes back what an earlier process of this id held, opens the buckets, and begins to claim. Waits for a
   * database that is away, telling `onFailure`; throws for a fault that no waiting mends, and {@link CalledOff}.
   */
  async open(onFailure: () => void): Promise<void> {
    const { identity, debug, store, settings, events } = this.#parts;
    const node = await this.#register(identity.nodeId(), onFailure);
    await debug.reach('start.registered', node.id);
    const rescued = await this.#patience.until(
      'rescue of own claims',
      () => store.rescueOwn(node, settings.maxCrashRedeliveries),
      onFailure,
    );
    await debug.reach('start.rescued', node.id);
    events.emit('rescued', rescued);
    if (rescued.recovered + rescued.failed > 0) {
      this.#logger.warn(
        `an earlier process of node ${node.id} stopped without a drain: ${rescued.recovered} of its jobs run again, ` +
          `${rescued.failed} were over the crash budget and are in the dead letter`,
      );
    }
    const buckets: Bucket[] = [];
    for (const { lane } of this.#lanes) buckets.push(await this.#openBucket(node, lane, onFailure));
    if (this.#leaving) throw new CalledOff();
    this.#serve(node, buckets);
    this.#reconciler.start();
  }

  /** No further claim; also ends the waits of {@link NodeEngine.open}. Synchronous. */
  stopClaims(): void {
    this.#leaving = true;
    this.#patience.callOff();
    for (const loop of this.#loops) loop.stopClaiming();
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
    const node = this.#node;
    if (!node) return;
    await this.#quietly(this.#parts.store.setNodeState(node, 'draining'));
    for (const loop of this.#loops) {
      if (loop.bucket.status === 'active') await this.#quietly(loop.bucket.moveTo('completing'));
    }
  }

  async whenIdle(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.whenIdle()));
  }

  async whenRecorded(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.whenRecorded()));
  }

  release(): number {
    return this.loops.reduce((sum, loop) => sum + loop.release(), 0);
  }

  abort(): void {
    for (const loop of this.#loops) loop.claims.abortAll('shutdown');
  }

  /** The bodies that obey their signal have ended. */
  async whenEnded(): Promise<void> {
    await Promise.all(this.loops.map((loop) => loop.claims.whenEmpty()));
    await this.late.settled();
  }

  /** Removes what the database knows of this node. What could not be recorded stays there for the next process of this id. */
  async leave(): Promise<boolean> {
    for (const loop of this.#loops) loop.stop();
    let clean = true;
    for (const loop of this.#loops) {
      clean = loop.recorded && (await loop.bucket.remove().catch(() => false)) && clean;
    }
    if (clean && this.#node) await this.#quietly(this.#parts.store.removeNode(this.#node));
    return clean;
  }

  /** Nothing is asked of the database from now on. */
  stop(): void {
    for (const loop of this.#loops) loop.stop();
    this.late.close();
  }

  async #register(id: string, onFailure?: () => void): Promise<NodeRef> {
    const { store, version, events } = this.#parts;
    const node = await this.#patience.until(
      'registration',
      () =>
        store.registerNode({
          id,
          host: hostname(),
          pid: process.pid,
          version,
          lanes: this.#lanes.map(({ lane }) => lane),
          handlers: this.#environment.handlers.map(({ name }) => name),
        }),
      onFailure,
    );
    this.#node = node;
    events.emit('registered', { node: node.id, epoch: node.epoch });
    return node;
  }

  async #openBucket(node: NodeRef, lane: string, onFailure?: () => void): Promise<Bucket> {
    const { store, events } = this.#parts;
    const ref = await this.#patience.until(
      'opening of a bucket',
      () => store.openBucket(node, lane),
      onFailure,
    );
    return new Bucket(ref, store, events);
  }

  #serve(node: NodeRef, buckets: readonly Bucket[]): void {
    const { store, locks, messages, clock, events, settings } = this.#parts;
    for (const bucket of buckets) this.#startLoop(bucket);
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

  #startLoop(bucket: Bucket): void {
    const { lane, node } = bucket.ref;
    const capacity = this.#lanes.find((served) => served.lane === lane)?.concurrency ?? 0;
    // Shared with the bucket before it: bodies that do not heed their signal keep their slots.
    const slots = this.#slots.get(lane) ?? new Slots(capacity);
    this.#slots.set(lane, slots);
    const loop: ExchangeLoop = new ExchangeLoop({
      ...this.#environment,
      bucket,
      slots,
      releaseError: `node ${node.id} shut down; job released`,
      onDeposed: () => this.#replace(loop),
    });
    this.#loops.add(loop);
    loop.start();
  }

  /** Somebody took the bucket away. Its jobs are theirs; this node goes on with a new one. */
  #replace(loop: ExchangeLoop): void {
    void loop.whenIdle().then(() => {
      loop.stop();
      this.#loops.delete(loop);
    });
    if (this.#leaving || this.#renaming) return;
    const { lane, node, id } = loop.bucket.ref;
    this.#logger.warn(
      `bucket ${id} of lane "${lane}" was taken away from node ${node.id}; its executions were told, a new bucket follows`,
    );
    void this.#openBucket(node, lane).then(
      (bucket) => {
        if (!this.#leaving && !this.#renaming) this.#startLoop(bucket);
      },
      (error: unknown) => this.#refused(node, error),
    );
  }

  #refused(node: NodeRef, error: unknown): void {
    if (this.#leaving) return;
    if (describeError(error).code !== 'NODE_DEPOSED') {
      this.faults.failed('opening of a bucket', error);
      return;
    }
    this.#renaming ??= this.#rename(node)
      .catch((cause: unknown) => {
        if (!this.#leaving) this.faults.failed('registration', cause);
      })
      .finally(() => (this.#renaming = undefined));
  }

  async #rename(old: NodeRef): Promise<void> {
    for (const loop of this.#loops) loop.depose();
    const tail = `~${randomBytes(4).toString('hex')}`;
    const node = await this.#register(old.id.slice(0, MOST_ID_LENGTH - tail.length) + tail);
    this.#logger.error(
      `another process registered as node ${old.id}; this one goes on as ${node.id}; give each process a nodeId of its own`,
    );
    const buckets: Bucket[] = [];
    for (const { lane } of this.#lanes) buckets.push(await this.#openBucket(node, lane));
    if (!this.#leaving) this.#serve(node, buckets);
  }

  async #quietly(work: Promise<unknown>): Promise<void> {
    await work.catch((error: unknown) => void this.faults.failed('drain', error));
  }
}
