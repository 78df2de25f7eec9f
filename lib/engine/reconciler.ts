import { type Clock } from '../cluster/clock.js';
import { type DebugPoints } from '../observability/debug-points.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type JobStore } from '../store/job-store.js';
import { Alarm } from './alarm.js';
import { type EngineFaults } from './engine-faults.js';
import { type ExchangeLoop } from './exchange-loop.js';
import { type LineLogger } from './line-logger.js';

/** The safety net looks this often. */
const RECONCILE_EVERY_MS = 60_000;

export interface ReconcilerParts {
  readonly store: JobStore;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  readonly faults: EngineFaults;
  readonly logger: LineLogger;
  readonly loops: () => readonly ExchangeLoop[];
}

/**
 * The safety net: once a minute, for all buckets at once, it looks for claims that nobody here knows, and shouts when it
 * finds one, because each is a fault of ours. A turn in flight cannot fool it: a claim that began while it looked is no
 * stray, and before it believes in one, it lets the exchange that is in flight be answered.
 */
export class Reconciler {
  readonly #parts: ReconcilerParts;
  readonly #alarm: Alarm;
  #stopped = true;
  #round: Promise<void> | undefined;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock);
  }

  start(): void {
    this.#stopped = false;
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#alarm.clear();
  }

  /** One look. Never rejects. */
  runOnce(): Promise<void> {
    this.#round ??= this.#look().finally(() => (this.#round = undefined));
    return this.#round;
  }

  #arm(): void {
    if (this.#stopped) return;
    this.#alarm.set(RECONCILE_EVERY_MS, () => void this.runOnce().finally(() => this.#arm()));
  }

  async #look(): Promise<void> {
    const { store, events, debug, faults, logger } = this.#parts;
    const loops = new Map(this.#parts.loops().map((loop) => [loop.bucket.ref.id, loop]));
    if (loops.size === 0) return;
    const seen = new Map([...loops].map(([id, loop]) => [id, loop.claims.watch()]));
    try {
      await debug.reach('reconcile.sending', 'interval');
      const answer = await store.reconcile({
        buckets: [...loops.values()].map((loop) => loop.bucket.ref),
        known: [...loops.values()].flatMap((loop) => loop.turns.known()),
        unsettled: [],
      });
      await debug.reach('reconcile.answered', 'interval');
      let strays = 0;
      for (const { bucketId, job } of answer.strays) {
        const loop = loops.get(bucketId);
        if (!loop) continue;
        await loop.turns.landed();
        if (!this.#stopped && loop.adopt(job, seen.get(bucketId) ?? new Set())) strays += 1;
      }
      for (const id of answer.deposed) loops.get(id)?.depose();
      for (const loop of loops.values()) loop.retryRefused();
      events.emit('reconciled', { cause: 'interval', buckets: loops.size, strays, recorded: 0, lost: 0 });
      if (strays > 0) {
        logger.error(
          `${strays} claimed jobs were known to nobody on this node and are run now; no work was lost, ` +
            `but please report it with the log lines before this one`,
        );
      }
    } catch (error) {
      faults.failed('reconcile', error);
    } finally {
      for (const loop of loops.values()) loop.claims.unwatch();
    }
  }
}
