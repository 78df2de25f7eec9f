import { type Clock } from '../cluster/clock.js';
import { type ClusterMessages } from '../cluster/cluster-messages.js';

/** Of one lane, not more often. */
const EVERY_MS = 500;

export interface BeggingParts {
  readonly messages: Pick<ClusterMessages, 'signal'>;
  readonly clock: Clock;
  /** Whether another node may have claimed jobs ahead. */
  readonly worthwhile: () => boolean;
}

/**
 * A node with free slots that found nothing due asks the others for what they have claimed ahead. A word that is lost costs latency
 * only: it asks again after its next look.
 */
export class Begging {
  readonly #parts: BeggingParts;
  readonly #notBeforeMs = new Map<string, number>();

  constructor(parts: BeggingParts) {
    this.#parts = parts;
  }

  beg(lane: string): void {
    const { messages, clock, worthwhile } = this.#parts;
    if (!worthwhile()) return;
    const nowMs = clock.monotonicMs();
    if (nowMs < (this.#notBeforeMs.get(lane) ?? 0)) return;
    this.#notBeforeMs.set(lane, nowMs + EVERY_MS);
    messages.signal({ kind: 'hungry', lane });
  }
}
