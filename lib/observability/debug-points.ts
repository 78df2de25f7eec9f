/** Places between two awaits of the engine where an interleaving matters. */
export type DebugPoint =
  | 'exchange.sending'
  | 'exchange.answered'
  | 'reconcile.sending'
  | 'reconcile.answered'
  | 'probe.answered'
  | 'start.registered'
  | 'start.rescued'
  | 'drain.releasing'
  | 'recurring.firing'
  | 'recurring.fired'
  | 'transaction.settling'
  | 'transaction.committing'
  | 'transaction.committed';

/**
 * Lets a test hold the engine at a named point, to force an interleaving that chance would take weeks to find. Nothing is
 * registered in production, and then `reach` costs one property read.
 */
export class DebugPoints {
  readonly #held = new Map<DebugPoint, (detail: string) => Promise<void> | undefined>();

  /** Called by the engine; `detail` is the bucket or the node. Await it only when it is defined. */
  reach(point: DebugPoint, detail: string): Promise<void> | undefined {
    return this.#held.size === 0 ? undefined : this.#held.get(point)?.(detail);
  }

  /** Called by tests: `visit` runs at each passage. Returns the function that removes it. */
  at(point: DebugPoint, visit: (detail: string) => Promise<void> | undefined): () => void {
    this.#held.set(point, visit);
    return () => void this.#held.delete(point);
  }
}
