import { type BeatAnswer, type BeatRequest } from '../../store/membership.js';

/** How a node is just now, for its next beat. Cheap to make: it is asked every second. */
export interface BeatState extends BeatRequest {
  /** How long to wait after a beat. */
  readonly intervalMs: number;
}

/** Hears what became of the beats. Called in the main thread, never twice at once. */
export interface BeatListener {
  answered(answer: BeatAnswer): void;
  failed(error: unknown): void;
  /** The main thread showed no sign of life for so long that the heartbeat was stopped on purpose. Told when it is back. */
  silenced(aliveAgoMs: number): void;
  /** It goes on in another way, and says what that means. */
  changed(message: string): void;
}

/**
 * Sends the heartbeats of a node until it is stopped. It knows nothing of what they mean.
 */
export interface Beater {
  start(listener: BeatListener): void;
  /** The state for the beats to come; also the sign that the main thread is alive. */
  update(state: BeatState): void;
  /**
   * When the last beat that the database acknowledged was sent, on the clock's monotonic time: what the database noted is not
   * earlier. Only of the node of the last {@link Beater.update}, and only beats that found it alive. Up to date although the main
   * thread may have been blocked.
   */
  readonly acknowledgedAtMs: number | undefined;
  /** Beats at once: a node that has just learned something should not wait. */
  beatNow(): void;
  stop(): Promise<void>;
}
