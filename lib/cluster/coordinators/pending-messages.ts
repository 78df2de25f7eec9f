import { type ClusterSignal, type Wakeup, type WakeupHint } from '../cluster-coordinator.js';
import { type CoordinatorMessage } from './coordinator-message.js';

/** More lanes, or signals, than this are not kept while the transport is away: they are hints. */
const MOST = 1_000;

interface PendingWakeup extends Omit<Wakeup, keyof WakeupHint> {
  /** On the monotonic clock: what waits here is due no later for it. 0 is now. */
  readonly dueAtMs: number;
  readonly behind: boolean;
}

/**
 * What is to be told next: one wakeup for each lane, however many were asked for, and each signal once. Bounded: the oldest are
 * forgotten.
 */
export class PendingMessages {
  #wakeups = new Map<string, PendingWakeup>();
  #signals = new Map<string, ClusterSignal>();

  get size(): number {
    return this.#wakeups.size + this.#signals.size;
  }

  add(message: CoordinatorMessage, nowMs: number): void {
    if (message.kind === 'wakeup') {
      const { lane } = message;
      put(this.#wakeups, lane, merged(this.#wakeups.get(lane), pendingOf(message, nowMs)));
    } else {
      put(this.#signals, keyOf(message), message);
    }
  }

  /** Everything, signals first: they are about work that runs. Nothing is pending then. */
  take(nowMs: number): readonly CoordinatorMessage[] {
    const messages = [
      ...this.#signals.values(),
      ...[...this.#wakeups.values()].map((wakeup) => messageOf(wakeup, nowMs)),
    ];
    this.#wakeups = new Map();
    this.#signals = new Map();
    return messages;
  }

  /** Takes back what could not be told. It is older than what has come since, so it is the first to be forgotten. */
  giveBack(messages: readonly CoordinatorMessage[], nowMs: number): void {
    const since = this.take(nowMs);
    for (const message of [...messages, ...since]) this.add(message, nowMs);
  }
}

function keyOf(signal: ClusterSignal): string {
  if (signal.kind === 'hungry') return `${signal.kind} ${signal.lane}`;
  return `${signal.kind} ${signal.jobId} ${signal.claimSeq ?? ''}`;
}

/** As the newest; beyond the limit the oldest goes. */
function put<Value>(into: Map<string, Value>, key: string, value: Value): void {
  into.delete(key);
  into.set(key, value);
  if (into.size <= MOST) return;
  for (const oldest of into.keys()) {
    into.delete(oldest);
    return;
  }
}

function pendingOf(
  { lane, priority, source, dueInMs = 0, behind = false }: Wakeup,
  nowMs: number,
): PendingWakeup {
  return { lane, priority, source, behind, dueAtMs: dueInMs > 0 ? nowMs + dueInMs : 0 };
}

function merged(one: PendingWakeup | undefined, other: PendingWakeup): PendingWakeup {
  if (!one) return other;
  return {
    ...other,
    priority: one.priority > other.priority ? one.priority : other.priority,
    dueAtMs: Math.min(one.dueAtMs, other.dueAtMs),
    behind: one.behind || other.behind,
  };
}

function messageOf(
  { lane, priority, source, dueAtMs, behind }: PendingWakeup,
  nowMs: number,
): CoordinatorMessage {
  const dueInMs = Math.ceil(dueAtMs - nowMs);
  return {
    kind: 'wakeup',
    lane,
    priority,
    source,
    ...(dueInMs > 0 ? { dueInMs } : {}),
    ...(behind ? { behind } : {}),
  };
}
