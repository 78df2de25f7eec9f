import { InvalidListenerError, UnknownEventError } from '../errors/event-errors.js';
import { nearest } from '../errors/nearest.js';
import { type EngineEvents } from './engine-events.js';
import { inOwnContext } from './own-context.js';
import { BRIDGES } from './ratchet-event-bridge.js';
import { type RatchetEventMap, type RatchetEventName } from './ratchet-event-map.js';

/** Called with each event. What it returns is not awaited; a promise that rejects is logged. */
export type RatchetEventListener<N extends RatchetEventName> = (event: RatchetEventMap[N]) => unknown;

/** Every listener stands for itself, so that the same function may be registered twice. */
interface Registration {
  readonly listener: (event: never) => unknown;
  active: boolean;
}

interface Audience {
  readonly registrations: Set<Registration>;
  readonly leave: () => void;
}

/**
 * Inject it to hear what this process does with jobs: for metrics, for logs, to push a state to a browser. Every event is told
 * after the fact is durable.
 *
 * Events are of this process only, and told once, to whoever listens then: a process that dies between the commit and the
 * listener tells nothing. What must happen after a job belongs in a job (`@OnJobFailure`, `ctx.enqueue`), not here.
 *
 * Listeners are called one after the other, within the engine's turn: a slow synchronous one slows the node. What they start
 * is not awaited. One that throws, or whose promise rejects, is logged with the event's name and stops nobody.
 *
 * @example
 * ```ts
 * @Injectable()
 * class JobMetrics implements OnModuleInit {
 *   constructor(private readonly events: RatchetEvents) {}
 *   onModuleInit() {
 *     this.events.on('job.succeeded', ({ name, durationMs }) => histogram.record(durationMs, { name }));
 *   }
 * }
 * ```
 */
export class RatchetEvents {
  readonly #engine: EngineEvents;
  readonly #onListenerError: (event: RatchetEventName, error: unknown) => void;
  readonly #audiences = new Map<RatchetEventName, Audience>();

  constructor(engine: EngineEvents, onListenerError: (event: RatchetEventName, error: unknown) => void) {
    this.#engine = engine;
    this.#onListenerError = onListenerError;
  }

  /**
   * Calls `listener` with each event of that name from now on; before the application has started and after it has closed,
   * too, when there is just nothing to hear.
   *
   * @returns the function that unregisters it. It may be called at any time, by the listener itself too.
   * @throws UnknownEventError, InvalidListenerError
   *
   * @example
   * const off = events.on('job.failed', ({ name, jobId, error }) => alerts.send(`${name} ${jobId}: ${error}`));
   */
  on<N extends RatchetEventName>(name: N, listener: RatchetEventListener<N>): () => void {
    const known = Object.keys(BRIDGES) as RatchetEventName[];
    if (!known.includes(name)) {
      const near = typeof name === 'string' ? nearest(name, known) : undefined;
      throw new UnknownEventError(name, near, known);
    }
    if (typeof listener !== 'function') throw new InvalidListenerError(name, listener);
    const registration: Registration = { listener, active: true };
    const audience = this.#audiences.get(name) ?? this.#gather(name);
    audience.registrations.add(registration);
    return () => this.#off(name, audience, registration);
  }

  #gather<N extends RatchetEventName>(name: N): Audience {
    const registrations = new Set<Registration>();
    const leave = BRIDGES[name](this.#engine, (payload) => this.#tell(name, registrations, payload));
    const audience = { registrations, leave };
    this.#audiences.set(name, audience);
    return audience;
  }

  #off(name: RatchetEventName, audience: Audience, registration: Registration): void {
    registration.active = false;
    audience.registrations.delete(registration);
    if (audience.registrations.size > 0 || this.#audiences.get(name) !== audience) return;
    this.#audiences.delete(name);
    audience.leave();
  }

  #tell<N extends RatchetEventName>(
    name: N,
    registrations: ReadonlySet<Registration>,
    payload: RatchetEventMap[N],
  ): void {
    // All hear the same object.
    Object.freeze(payload);
    for (const registration of [...registrations]) {
      if (registration.active) this.#call(name, registration.listener as RatchetEventListener<N>, payload);
    }
  }

  #call<N extends RatchetEventName>(
    name: N,
    listener: RatchetEventListener<N>,
    payload: RatchetEventMap[N],
  ): void {
    const fail = (error: unknown): void => {
      try {
        this.#onListenerError(name, error);
      } catch {
        // A logger that throws must not stop the engine either.
      }
    };
    // In nobody's context: an enqueue of a request and the end of another job are told alike.
    inOwnContext(() => {
      try {
        const result = listener(payload);
        if (isObject(result)) Promise.resolve(result).then(undefined, fail);
      } catch (error) {
        fail(error);
      }
    });
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
