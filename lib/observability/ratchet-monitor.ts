import { type NodeInfo, type RatchetSnapshot } from './ratchet-snapshot.js';

/** Where a {@link RatchetMonitor} looks. */
export interface MonitorSources {
  snapshot(): RatchetSnapshot;
  nodes(): Promise<NodeInfo[]>;
}

/**
 * How the engine of this process is, and which nodes there are: for health checks, metrics and dashboards. Inject it.
 *
 * @example
 * ```ts
 * const { state, heartbeat, lanes } = monitor.snapshot();
 * for (const { id, status } of await monitor.nodes()) console.log(id, status);
 * ```
 */
export class RatchetMonitor {
  readonly #sources: MonitorSources;

  constructor(sources: MonitorSources) {
    this.#sources = sources;
  }

  /** What this process knows of its own engine, now. Asks nobody, waits for nothing, and never throws. */
  snapshot(): RatchetSnapshot {
    return this.#sources.snapshot();
  }

  /**
   * The nodes of the cluster, by id. Asks the database, so it is nothing for probes.
   *
   * @throws StoreError when the database cannot be asked.
   */
  nodes(): Promise<NodeInfo[]> {
    return this.#sources.nodes();
  }
}
