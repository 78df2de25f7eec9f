type Listener = Parameters<AbortSignal['addEventListener']>[1];
type Options = Parameters<AbortSignal['addEventListener']>[2];

/**
 * Makes the listeners of one signal harmless: what they throw, or reject with, goes to `onError`. Node rethrows errors of
 * event listeners in a tick of their own, where nothing can catch them, so that one handler's careless listener would end
 * the process with all its jobs. The signal stays what it is: libraries, `AbortSignal.any` and `instanceof` see no difference.
 */
export function guardListeners(signal: AbortSignal, onError: (error: unknown) => void): AbortSignal {
  // The same listener is always the same wrapper, so that adding twice and removing work as ever.
  const wrappers = new WeakMap<object, (event: Event) => void>();
  const wrapped = (listener: Listener): ((event: Event) => void) => {
    const wrapper =
      wrappers.get(listener) ??
      function (this: unknown, event: Event): void {
        try {
          const ended: unknown =
            typeof listener === 'function'
              ? listener.call(this as never, event)
              : listener.handleEvent(event);
          Promise.resolve(ended).catch(onError);
        } catch (error) {
          onError(error);
        }
      };
    wrappers.set(listener, wrapper);
    return wrapper;
  };
  const own = <T>(value: T): PropertyDescriptor => ({ value, writable: true, configurable: true });
  let onabort: AbortSignal['onabort'] = null;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  const setHandler = (handler: unknown): boolean =>
    Reflect.set(AbortSignal.prototype, 'onabort', handler, signal);
  return Object.defineProperties(signal, {
    addEventListener: own((type: string, listener: unknown, options?: Options) =>
      add(type, isListener(listener) ? wrapped(listener) : (listener as Listener), options),
    ),
    removeEventListener: own((type: string, listener: unknown, options?: Options) =>
      remove(
        type,
        (isListener(listener) ? wrappers.get(listener) : undefined) ?? (listener as Listener),
        options,
      ),
    ),
    onabort: {
      configurable: true,
      get: () => onabort,
      set: (handler: unknown) => {
        onabort = typeof handler === 'function' ? (handler as AbortSignal['onabort']) : null;
        setHandler(onabort === null ? null : wrapped(onabort as Listener));
      },
    },
  });
}

function isListener(value: unknown): value is Listener {
  return typeof value === 'function' || (typeof value === 'object' && value !== null);
}
