/** Statements of keyed jobs at once: they may wait for somebody's key, and the app's pool must not be full of them. */
const AT_ONCE = 5;

/**
 * Takes keyed work one at a time per key within this process, in call order, and a few keys at once: a thousand enqueues of
 * one key would otherwise wait for each other inside the database, each with a connection of the app.
 */
export class KeyedTurns {
  readonly #tails = new Map<string, Promise<void>>();
  readonly #queue: (() => void)[] = [];
  #running = 0;

  /** Runs `work` once all of its keys are free here. Rejects as `work` does. */
  async run<T>(keys: readonly string[], work: () => Promise<T>): Promise<T> {
    // All tails are replaced in one go, so two calls can never wait for each other.
    const before = keys.map((key) => this.#tails.get(key) ?? Promise.resolve());
    let done = (): void => undefined;
    const turn = new Promise<void>((resolve) => (done = resolve));
    for (const key of keys) this.#tails.set(key, turn);
    try {
      await Promise.all(before);
      await this.#slot();
      try {
        return await work();
      } finally {
        this.#pass();
      }
    } finally {
      for (const key of keys) if (this.#tails.get(key) === turn) this.#tails.delete(key);
      done();
    }
  }

  async #slot(): Promise<void> {
    if (this.#running < AT_ONCE) this.#running += 1;
    else await new Promise<void>((resolve) => this.#queue.push(resolve));
  }

  /** The slot goes from hand to hand: counted down and up again, somebody who comes in between would be one too many. */
  #pass(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#running -= 1;
  }
}
