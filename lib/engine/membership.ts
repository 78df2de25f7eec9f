import { Rescuer } from '../buckets/rescuer.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';
import { type Clock } from '../cluster/clock.js';
import { type Beater } from '../cluster/heartbeat/beater.js';
import { Heartbeat } from '../cluster/heartbeat/heartbeat.js';
import { rankOf } from '../jobs/priority.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type RatchetSnapshot } from '../observability/ratchet-snapshot.js';
import { type JobStore, type NodeRef, type Notice } from '../store/job-store.js';
import { type EngineFaults } from './engine-faults.js';
import { type EngineSettings } from './engine-settings.js';
import { type ExchangeLoop } from './exchange-loop.js';
import { type LineLogger } from './line-logger.js';

export interface MembershipParts {
  readonly store: Pick<JobStore, 'rescueLost'>;
  readonly beater: Beater;
  readonly settings: Pick<EngineSettings, 'heartbeat' | 'maxCrashRedeliveries'>;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly faults: EngineFaults;
  readonly logger: LineLogger;
  readonly messages: ClusterMessages;
  readonly loops: () => readonly ExchangeLoop[];
  /** Names of the handlers that began since it was last asked. */
  readonly begun: () => readonly string[];
  readonly onNotices: (notices: readonly Notice[]) => void;
  /** Whether somebody has drained the node by hand. */
  readonly onCordoned: (cordoned: boolean) => void;
  /** A recurring schedule of the cluster is due in so many milliseconds. */
  readonly onScheduled: (inMs: number) => void;
  /** Whether the node may act: see {@link Membership.held}. */
  readonly onLease: (held: boolean) => void;
  /** The node's row is gone: it needs another. */
  readonly onDead: (node: NodeRef) => void;
}

/** A bucket whose last claim came back full has more than that waiting. */
const MORE_THAN = 200;

/**
 * A node as a member of the cluster: it says that it lives, claims only while that is acknowledged, drops everything when others
 * have declared it dead, and takes back the work of those who stopped.
 */
export class Membership {
  readonly #parts: MembershipParts;
  readonly #rescuer: Rescuer;
  readonly #heartbeat: Heartbeat;
  #node: NodeRef;
  #recent: readonly string[] = [];
  #buffersElsewhere = false;

  constructor(node: NodeRef, parts: MembershipParts) {
    this.#node = node;
    this.#parts = parts;
    const { store, beater, settings, clock, events, faults, logger, messages } = parts;
    const { graceMs, baseMs } = settings.heartbeat;
    this.#rescuer = new Rescuer({
      store,
      clock,
      events,
      graceMs,
      maxCrashRedeliveries: settings.maxCrashRedeliveries,
      logger,
      // One for each lane wakes every stream of it.
      onWork: (lanes) => {
        for (const lane of lanes) messages.newWork(lane, rankOf('normal'), { behind: true });
      },
      onFault: (error) => void faults.failed('rescue', error),
    });
    this.#heartbeat = new Heartbeat(node, {
      beater,
      clock,
      events,
      limits: { baseMs, graceMs },
      logger,
      onFault: (error) => void faults.failed('heartbeat', error),
      onWell: () => faults.worked('heartbeat'),
      listener: {
        load: () => this.#load(),
        recentHandlers: () => this.#recentHandlers(),
        lost: (mayDeclare) => void this.#rescuer.run(this.#node, mayDeclare),
        noticed: (notices) => parts.onNotices(notices),
        cordoned: (yes) => parts.onCordoned(yes),
        buffersElsewhere: (yes) => (this.#buffersElsewhere = yes),
        scheduled: (inMs) => parts.onScheduled(inMs),
        declaredDead: (dead) => this.#declaredDead(dead),
        lease: (held) => {
          for (const loop of parts.loops()) loop.hold(!held);
          parts.onLease(held);
        },
      },
    });
  }

  /** Whether a heartbeat was acknowledged within the grace. */
  get held(): boolean {
    return this.#heartbeat.held;
  }

  /** Other nodes may have claimed jobs ahead. */
  get buffersElsewhere(): boolean {
    return this.#buffersElsewhere;
  }

  report(): Required<Pick<RatchetSnapshot, 'heartbeat' | 'eventLoop'>> {
    const stallLimitMs = this.#parts.settings.heartbeat.stallMs;
    return {
      heartbeat: this.#heartbeat.report(),
      eventLoop: { ...this.#heartbeat.eventLoop(), stallLimitMs },
    };
  }

  start(): void {
    this.#heartbeat.start();
  }

  /** Asks for the notices, too. */
  beatNow(): void {
    this.#parts.beater.beatNow();
  }

  /** The node has another name or epoch from now on. */
  rename(node: NodeRef): void {
    this.#node = node;
    this.#heartbeat.rename(node);
  }

  /** The heartbeat goes on: what this node holds is still its own. */
  stopRescue(): Promise<void> {
    return this.#rescuer.stop();
  }

  /** Nothing that is still on its way is heard any more. */
  async stop(): Promise<void> {
    await Promise.all([this.#rescuer.stop(), this.#heartbeat.stop()]);
  }

  #load(): { running: number; backlog: number } {
    let running = 0;
    let more = 0;
    for (const loop of this.#parts.loops()) {
      running += loop.claims.size;
      if (loop.hasMore) more = MORE_THAN;
    }
    return { running, backlog: running + more };
  }

  /** Those that ran at the last look are among them: one that blocked the loop may have ended with it. */
  #recentHandlers(): readonly string[] {
    const running = this.#parts.loops().flatMap((loop) => [...loop.claims.names()]);
    const names = new Set([...this.#recent, ...this.#parts.begun(), ...running]);
    this.#recent = running;
    return [...names];
  }

  #declaredDead(node: NodeRef): void {
    const { events, logger, loops, onDead } = this.#parts;
    events.emit('declared_dead', { node: node.id, epoch: node.epoch });
    logger.error(
      `node ${node.id}: others declared it dead, because its heartbeats did not arrive within the grace, and take its jobs back: ` +
        'its executions are told (reason "lost") and it registers again',
    );
    for (const loop of loops()) loop.depose();
    onDead(node);
  }
}
