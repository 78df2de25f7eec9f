const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
type Signal = (typeof SIGNALS)[number];

/** Listeners of this kind, of every runtime of the process: they are no reason for a signal not to end it. */
const ours = new WeakSet<object>();

/**
 * Hears the signals that come while a node drains: whoever sends a second one does not want to wait any longer. Lives only while
 * the drain runs, since a listener for a signal keeps that signal from ending the process; for the same reason a signal that
 * nobody else listens to is sent again when the drain is over.
 */
export class DrainSignals {
  /** Resolves when the first signal comes. */
  readonly hurried: Promise<void>;
  readonly #process: NodeJS.Process;
  readonly #listener: (signal: Signal) => void;
  #awaited = false;
  #heard: Signal | undefined;
  #again: Signal | undefined;

  constructor(on: NodeJS.Process = process) {
    this.#process = on;
    let hurry: () => void = () => {};
    this.hurried = new Promise((resolve) => (hurry = resolve));
    this.#listener = (signal) => {
      if (!on.listeners(signal).some((listener) => !ours.has(listener))) this.#again = signal;
      this.#heard ??= signal;
      hurry();
      if (!this.#awaited) this.#unawaited();
    };
    ours.add(this.#listener);
    for (const signal of SIGNALS) on.on(signal, this.#listener);
  }

  /** The first signal, if one came. */
  get heard(): Signal | undefined {
    return this.#heard;
  }

  /** Somebody waits for the drain, and says when it is over. */
  awaited(): void {
    this.#awaited = true;
  }

  /** The drain is over. */
  end(): void {
    for (const signal of SIGNALS) this.#process.off(signal, this.#listener);
    if (this.#again) this.#process.kill(this.#process.pid, this.#again);
  }

  /** Claims have stopped, and nobody has asked for more: the signal may be on its way to end the process. */
  #unawaited(): void {
    if (this.#again) this.end();
  }
}
