import { type EngineEvents } from '../../observability/engine-events.js';
import { type EventLoopSnapshot, type HeartbeatSnapshot } from '../../observability/ratchet-snapshot.js';
import { inOwnContext } from '../../observability/own-context.js';
import { type BeatAnswer, type NodeRef, type Notice } from '../../store/membership.js';
import { type Clock } from '../clock.js';
import { type Beater } from './beater.js';
import { DynamicHeartbeatCalculator, type HeartbeatLimits } from './dynamic-heartbeat-calculator.js';
import { LoopLag } from './loop-lag.js';
import { WorstOfMinute } from './worst-of-minute.js';

/** What a node tells its heartbeat of itself. */
export interface NodeLoad {
  /** Executions whose bodies have not ended. */
  readonly running: number;
  /** These, and the due jobs that the node knows of. */
  readonly backlog: number;
}

/** What a heartbeat tells its node. */
export interface HeartbeatListener {
  load(): NodeLoad;
  /** Names of the handlers that ran since the last time it was asked: one of them blocked the event loop. */
  recentHandlers(): readonly string[];
  /**
   * Something is to be taken back. `mayDeclare`: this node has been in touch with the database for long enough to judge by their
   * heartbeats that others are dead.
   */
  lost(mayDeclare: boolean): void;
  noticed(notices: readonly Notice[]): void;
  /** Whether somebody has drained the node by hand: told with each beat that found it alive. */
  cordoned(yes: boolean): void;
  /** Whether other nodes may have claimed jobs ahead: told as well. */
  buffersElsewhere(yes: boolean): void;
  /** A recurring schedule is due in so many milliseconds; 0 also when an occurrence that waited can become a job. */
  scheduled(inMs: number): void;
  /** Others declared this node dead, and take its claims back. */
  declaredDead(node: NodeRef): void;
  /**
   * False: no heartbeat was acknowledged within the grace, so that others may be taking the claims back: claim nothing. True: they
   * are again.
   */
  lease(held: boolean): void;
}

export interface HeartbeatParts {
  readonly beater: Beater;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly limits: HeartbeatLimits;
  readonly listener: HeartbeatListener;
  readonly logger: { warn(message: string): void; error(message: string): void; log(message: string): void };
  readonly onFault: (error: unknown) => void;
  /** The first beat after faults that the database answered. */
  readonly onWell: () => void;
}

const TICK_MS = 1_000;
/**
 * The part of the grace for which a node's own beats must have been answered before it declares others dead: after an outage of
 * the database, or a pause of the whole machine, everybody's last beat is old, and whoever comes back first must let the others come.
 */
const STEADY_PART = 1 / 2;
/** A wait between two answers that is longer than this part of the grace was no ordinary one. */
const PAUSE_PART = 2 / 3;
/** From here on a blocked event loop is worth a line. */
const LAG_WORTH_A_LINE_MS = 1_000;
const LAG_LINE_EVERY_MS = 10_000;

/**
 * The heartbeat of a node, seen from the main thread: what the next beats say, and what the answers mean. It decides by its own
 * monotonic clock whether the node's lease on its claims still stands, and never compares that with the database's.
 */
export class Heartbeat {
  readonly #parts: HeartbeatParts;
  readonly #calculator: DynamicHeartbeatCalculator;
  readonly #lag: LoopLag;
  readonly #worst = new WorstOfMinute();
  #node: NodeRef;
  /** Since when it has its name: the first registration counts as a beat, a later one does not. */
  #namedMs: number;
  #renamed = false;
  #nodes = 1;
  #worstLagMs = 0;
  #held = true;
  /** The loss of the lease was logged: so is its return. */
  #toldLoss = false;
  #dead = false;
  #faults = 0;
  /** Since when every beat was answered, without a pause. */
  #steadySinceMs: number | undefined;
  #answeredMs: number | undefined;
  #nextLagLineMs = 0;

  constructor(node: NodeRef, parts: HeartbeatParts) {
    this.#node = node;
    this.#parts = parts;
    this.#calculator = new DynamicHeartbeatCalculator(parts.limits);
    this.#lag = new LoopLag(parts.clock, Math.min(TICK_MS, parts.limits.graceMs / 10));
    this.#namedMs = parts.clock.monotonicMs();
  }

  /** Whether a beat was acknowledged within the grace. */
  get held(): boolean {
    return this.#held;
  }

  /** As of now, not of the last look. */
  report(): HeartbeatSnapshot {
    const { beater, clock, limits } = this.#parts;
    const { graceMs } = limits;
    const at = beater.acknowledgedAtMs;
    return {
      held: !this.#dead && this.#isAcknowledged(),
      ...(at === undefined ? {} : { acknowledgedAgeMs: Math.max(0, Math.round(clock.monotonicMs() - at)) }),
      graceMs,
      nodes: this.#nodes,
    };
  }

  eventLoop(): Omit<EventLoopSnapshot, 'stallLimitMs'> {
    const overdueMs = Math.round(this.#lag.overdueMs);
    const worstMs = Math.round(this.#worst.worst(this.#parts.clock.monotonicMs()));
    return { overdueMs, worstMs: Math.max(worstMs, overdueMs) };
  }

  start(): void {
    const { beater } = this.#parts;
    beater.start({
      answered: (answer) => this.#answered(answer),
      failed: (error) => this.#failed(error),
      silenced: (aliveAgoMs) => this.#silenced(aliveAgoMs),
      changed: (message) => this.#parts.logger.warn(`node ${this.#node.id}: ${message}`),
    });
    this.#update();
    this.#lag.start((lagMs) => inOwnContext(() => this.#tick(lagMs)));
  }

  /** The node has another name or epoch from now on. It has no lease until a beat of that is acknowledged. */
  rename(node: NodeRef): void {
    this.#node = node;
    this.#dead = false;
    this.#renamed = true;
    this.#namedMs = this.#parts.clock.monotonicMs();
    this.#update();
    this.#checkLease();
    this.#parts.beater.beatNow();
  }

  async stop(): Promise<void> {
    this.#lag.stop();
    await this.#parts.beater.stop();
  }

  #tick(lagMs: number): void {
    this.#worstLagMs = Math.max(this.#worstLagMs, lagMs);
    this.#worst.note(this.#parts.clock.monotonicMs(), lagMs);
    this.#tellLag(lagMs);
    this.#update();
    this.#checkLease();
  }

  #update(): void {
    const { beater, listener, limits } = this.#parts;
    const { running, backlog } = listener.load();
    beater.update({
      node: this.#node,
      graceMs: limits.graceMs,
      running,
      lagMs: this.#worstLagMs,
      intervalMs: this.#calculator.intervalMs({ nodes: this.#nodes, backlog }),
    });
  }

  /** A beat under the name of now was, within the grace. */
  #isAcknowledged(): boolean {
    const { beater, clock, limits } = this.#parts;
    const atMs = beater.acknowledgedAtMs ?? (this.#renamed ? -Infinity : this.#namedMs);
    return clock.monotonicMs() - atMs <= limits.graceMs;
  }

  #checkLease(): void {
    const { listener, events } = this.#parts;
    const held = this.#isAcknowledged();
    this.#tellLease(held);
    if (held === this.#held) return;
    this.#held = held;
    events.emit('lease', { node: this.#node.id, held });
    listener.lease(held);
  }

  /** A node that has just registered again waits for a beat, which is no news before the grace is over. */
  #tellLease(held: boolean): void {
    const { beater, clock, limits, logger } = this.#parts;
    if (held && this.#toldLoss) {
      logger.log(`node ${this.#node.id}: heartbeats are acknowledged again; it claims again`);
      this.#toldLoss = false;
    }
    const ageMs = clock.monotonicMs() - (beater.acknowledgedAtMs ?? this.#namedMs);
    if (held || this.#toldLoss || ageMs <= limits.graceMs) return;
    this.#toldLoss = true;
    logger.warn(
      `node ${this.#node.id}: no heartbeat was acknowledged for ${Math.round(ageMs)} ms (the grace is ${limits.graceMs} ms): ` +
        'it claims nothing until one is; other nodes may take its jobs back',
    );
  }

  #answered({ alive, nodes, lost, notices, scheduleInMs, ...answer }: BeatAnswer): void {
    const { listener, events, onWell } = this.#parts;
    events.emit('beat', { node: this.#node.id, alive, nodes });
    if (this.#faults > 0) onWell();
    this.#faults = 0;
    this.#worstLagMs = 0;
    this.#noteSteady();
    if (notices.length > 0) listener.noticed(notices);
    if (!alive) {
      // Said once: the node is told, and comes back under another epoch.
      if (!this.#dead) listener.declaredDead(this.#node);
      this.#dead = true;
      return;
    }
    this.#nodes = nodes;
    this.#checkLease();
    listener.cordoned(answer.cordoned ?? false);
    listener.buffersElsewhere(answer.buffersElsewhere ?? false);
    if (lost) listener.lost(this.#mayDeclare());
    if (scheduleInMs !== undefined) listener.scheduled(scheduleInMs);
  }

  #noteSteady(): void {
    const { clock, limits } = this.#parts;
    const nowMs = clock.monotonicMs();
    const paused = this.#answeredMs !== undefined && nowMs - this.#answeredMs > limits.graceMs * PAUSE_PART;
    if (paused) this.#steadySinceMs = undefined;
    this.#steadySinceMs ??= nowMs;
    this.#answeredMs = nowMs;
  }

  #mayDeclare(): boolean {
    const { clock, limits } = this.#parts;
    const sinceMs = this.#steadySinceMs ?? clock.monotonicMs();
    return clock.monotonicMs() - sinceMs >= limits.graceMs * STEADY_PART;
  }

  #failed(error: unknown): void {
    this.#faults += 1;
    this.#steadySinceMs = undefined;
    this.#parts.onFault(error);
    this.#checkLease();
  }

  #silenced(aliveAgoMs: number): void {
    this.#parts.logger.error(
      `node ${this.#node.id}: its event loop stood still for ${Math.round(aliveAgoMs / 1_000)} s, beyond the stall limit, so its heartbeat ` +
        'was stopped and other nodes take its jobs back',
    );
  }

  #tellLag(lagMs: number): void {
    const { listener, events, clock, logger } = this.#parts;
    const handlers = listener.recentHandlers();
    if (lagMs < LAG_WORTH_A_LINE_MS) return;
    events.emit('loop_lag', { node: this.#node.id, lagMs: Math.round(lagMs), handlers });
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#nextLagLineMs) return;
    this.#nextLagLineMs = nowMs + LAG_LINE_EVERY_MS;
    const which = handlers.length === 0 ? 'no handler ran' : `these handlers ran: ${handlers.join(', ')}`;
    logger.warn(
      `node ${this.#node.id}: the event loop stood still for ${Math.round(lagMs)} ms while ${which}; ` +
        'move work that keeps the CPU busy to a worker thread',
    );
  }
}
