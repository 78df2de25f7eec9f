/**
 * The children that a transactional handler enqueues. They are committed with its rows, so one that is refused must not be
 * missed: unless the handler itself looks for the refusal (it awaits the promise, or catches on it), its execution fails.
 */
export class HandlerChildren {
  readonly #pending = new Set<Promise<unknown>>();
  readonly #refused: { readonly child: Child<unknown>; readonly error: unknown }[] = [];
  #over = false;

  /** What the handler gets for a child. */
  watch<T>(enqueued: Promise<T>): Promise<T> {
    // Asked for by something that outlived its handler: nobody waits for it, and a rejection is told as any that is left behind.
    if (this.#over) return enqueued;
    const child = new Child<T>((resolve, reject) => {
      enqueued.then(resolve, reject);
    });
    const watched = child.quietly().then(
      () => void this.#pending.delete(watched),
      (error: unknown) => {
        this.#pending.delete(watched);
        if (!child.isLookedAt) this.#refused.push({ child, error });
      },
    );
    this.#pending.add(watched);
    return child;
  }

  /** Once the handler has ended: waits for those that are under way. The first refusal that nobody looked at. */
  async missedRefusal(): Promise<{ readonly error: unknown } | undefined> {
    this.#over = true;
    await Promise.all(this.#pending);
    return this.#refused.find(({ child }) => !child.isLookedAt);
  }
}

/** A promise that knows whether somebody will hear of its rejection. `await` calls `then` of any promise that is not a plain one. */
class Child<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  isLookedAt = false;

  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    if (onRejected) this.isLookedAt = true;
    return super.then(onFulfilled, onRejected);
  }

  /** To watch it without being the one who looks. */
  quietly(): Promise<T> {
    return super.then((value) => value);
  }
}
