/**
 * Hears of aborts, with one listener on each signal, however many wait by it: Node warns of a leak at the eleventh, and a
 * handler may await a thousand children by its `ctx.signal`.
 */
export class AbortListeners {
  readonly #bySignal = new Map<AbortSignal, { readonly calls: Set<() => void>; readonly off: () => void }>();

  /** Calls back once the signal is aborted; throws what a signal that cannot be listened to throws. Returns the function that takes that back. */
  on(signal: AbortSignal, call: () => void): () => void {
    const { calls } = this.#bySignal.get(signal) ?? this.#listen(signal);
    calls.add(call);
    return () => {
      calls.delete(call);
      if (calls.size === 0) this.#deafen(signal);
    };
  }

  #listen(signal: AbortSignal): { readonly calls: Set<() => void>; readonly off: () => void } {
    const calls = new Set<() => void>();
    const onAbort = (): void => {
      for (const call of [...calls]) call();
    };
    signal.addEventListener('abort', onAbort, { once: true });
    const heard = { calls, off: () => signal.removeEventListener('abort', onAbort) };
    this.#bySignal.set(signal, heard);
    return heard;
  }

  #deafen(signal: AbortSignal): void {
    const heard = this.#bySignal.get(signal);
    this.#bySignal.delete(signal);
    try {
      heard?.off();
    } catch {
      // A signal of somebody's own making: it calls back to nobody.
    }
  }
}
