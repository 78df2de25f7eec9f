import { type RatchetMonitor, type RatchetSnapshot } from '../index.js';
import { type HealthDetails, type HealthResult } from './health-result.js';
import { degradations, whyNotLive, whyNotReady } from './health-rules.js';
import { type HealthSessions } from './terminus.js';

/**
 * Health checks for terminus, by what the process knows of its own engine: no check asks the database, waits, or throws.
 *
 * @example
 * ```ts
 * return this.health.check([() => this.ratchet.isReady()]);
 * ```
 */
export class RatchetHealthIndicator {
  readonly #monitor: RatchetMonitor;
  readonly #sessions: HealthSessions;

  constructor(monitor: RatchetMonitor, sessions: HealthSessions) {
    this.#monitor = monitor;
    this.#sessions = sessions;
  }

  /**
   * Whether the process should go on. Down only when a restart is the mend: the engine's timer is overdue by more than
   * `heartbeat.stallLimit`, the node will never begin, or the engine is closed. Up while it starts, drains, and while the
   * database is away.
   *
   * @param key - under which the result stands. @defaultValue `ratchet`
   */
  isLive<const K extends string = 'ratchet'>(key?: K): HealthResult<K> {
    return this.#check(key, whyNotLive);
  }

  /**
   * Whether the process works now. Down while it starts, from the first word of a shutdown on, and while no heartbeat is
   * acknowledged within the grace. Up, with the reasons in `degraded`, when somebody should look: the coordinator is down,
   * statements fail, history partitions end soon.
   *
   * @param key - as for {@link RatchetHealthIndicator.isLive}.
   */
  isReady<const K extends string = 'ratchet'>(key?: K): HealthResult<K> {
    return this.#check(key, whyNotReady);
  }

  #check<K extends string>(
    key: K | undefined,
    rule: (snapshot: RatchetSnapshot) => string | undefined,
  ): HealthResult<K> {
    const session = this.#sessions.check(key ?? ('ratchet' as K));
    const snapshot = this.#monitor.snapshot();
    const reason = rule(snapshot);
    const details = detailsOf(snapshot);
    return reason === undefined ? session.up(details) : session.down({ reason, ...details });
  }
}

function detailsOf(snapshot: RatchetSnapshot): HealthDetails {
  const {
    node,
    state,
    running,
    worker,
    heartbeat,
    eventLoop,
    coordinator,
    slots = 0,
    faults,
    partitions,
  } = snapshot;
  const degraded = degradations(snapshot);
  return {
    ...(degraded.length > 0 ? { degraded } : {}),
    nodeId: node.id,
    state,
    worker,
    running,
    concurrency: slots,
    ...(heartbeat ? { heartbeatAgeMs: heartbeat.acknowledgedAgeMs, nodes: heartbeat.nodes } : {}),
    ...(eventLoop ? { eventLoopWorstMs: eventLoop.worstMs } : {}),
    coordinator: coordinator.state,
    ...(faults.last ? { lastFault: faults.last } : {}),
    ...(partitions ? { partitionDaysAhead: partitions.daysAhead } : {}),
  };
}
