import { randomBytes } from 'node:crypto';
import { describeError } from '../../errors/describe-error.js';
import { type PriorityRank } from '../../jobs/priority.js';
import { inOwnContext } from '../../observability/own-context.js';
import { SystemClock } from '../clock.js';
import {
  ClusterCoordinator,
  type ClusterSignal,
  type CoordinatorHealth,
  type Wakeup,
  type WakeupHint,
} from '../cluster-coordinator.js';
import { Listeners } from '../listeners.js';
import { within } from '../within.js';
import { type CoordinatorMessage, decode, encode, readMessage } from './coordinator-message.js';
import { Publisher } from './publisher.js';
import { TransportLog } from './transport-log.js';

/** What a {@link BroadcastCoordinator} must know of its transport. */
export interface BroadcastOptions {
  /** The longest text that the transport carries, in bytes. @defaultValue `64_000` */
  readonly maxBytes?: number;
  /** The least time between two calls of `broadcast`, in milliseconds. @defaultValue `20` */
  readonly intervalMs?: number;
}

const MAX_BYTES = 64_000;
const INTERVAL_MS = 20;
/** For what is still pending at the end: the database may be away, and nobody loses work by it. */
const LAST_WORD_MS = 300;
const DISCONNECT_MS = 1_000;

const clock = new SystemClock();

/**
 * A coordinator over anything that can carry a text to all other processes: a channel of a broker, a socket, a topic. A subclass
 * says how to connect, to send and to close; the rest is done here: messages are gathered (the first goes at once, then one batch
 * every 20 ms), split to the size that the transport takes, tried again while it is away, bounded, checked on receipt, and told to
 * guarded listeners. A process never hears itself: each has a random word, because node ids can repeat and change.
 *
 * @example
 * ```ts
 * class RedisCoordinator extends BroadcastCoordinator {
 *   constructor(private readonly redis: Redis, private readonly subscriber = redis.duplicate()) {
 *     super();
 *   }
 *   protected connect() {
 *     this.subscriber.on('message', (_channel, text) => this.receive(text));
 *     this.subscriber.on('ready', () => this.caughtUp());
 *     void this.subscriber.subscribe('ratchet').catch(() => undefined);
 *   }
 *   protected async broadcast(texts: readonly string[]) {
 *     for (const text of texts) await this.redis.publish('ratchet', text);
 *   }
 *   protected async disconnect() {
 *     this.subscriber.disconnect();
 *   }
 * }
 * ```
 */
export abstract class BroadcastCoordinator extends ClusterCoordinator {
  readonly #log = new TransportLog();
  readonly #maxBytes: number;
  readonly #token = randomBytes(8).toString('hex');
  readonly #wakeups = new Listeners<Wakeup>();
  readonly #signals = new Listeners<ClusterSignal>();
  readonly #catchUps = new Listeners<undefined>();
  readonly #publisher: Publisher;
  #connected = false;
  #sawForeign = false;
  #closing: Promise<void> | undefined;

  constructor({ maxBytes = MAX_BYTES, intervalMs = INTERVAL_MS }: BroadcastOptions = {}) {
    super();
    this.#maxBytes = maxBytes;
    this.#publisher = new Publisher({
      clock,
      intervalMs,
      send: (messages) => this.#send(messages),
      onFault: (error) =>
        this.#log.warn(
          'send',
          `could not tell other nodes of work, so they find it when they poll: ${describeError(error).message}; trying again`,
        ),
      onMended: () => this.#log.log('sent', 'other nodes are told of work again'),
    });
  }

  /**
   * Begins to hear the others: each text that arrives goes to {@link receive}. Called once, when the first listener registers:
   * never in a process that only enqueues. Must return at once, not throw, and reconnect by itself.
   */
  protected abstract connect(): void;

  /**
   * Sends each text to all other processes; this one may get it too. Called whether or not `connect` was. One call at a time.
   * A rejection means that nobody may have heard: the messages are sent again, or forgotten when there are too many.
   */
  protected abstract broadcast(texts: readonly string[]): Promise<void>;

  /** Closes what `connect` and `broadcast` opened. Called once; after a second nobody waits for it. */
  protected abstract disconnect(): Promise<void>;

  override notifyNewWork(priority: PriorityRank, source: string, lane: string, hint: WakeupHint = {}): void {
    this.#publish({ kind: 'wakeup', ...hint, priority, source, lane });
  }

  override publish(signal: ClusterSignal): void {
    this.#publish(signal);
  }

  override registerWakeupListener(listener: (wakeup: Wakeup) => void): () => void {
    return this.#register(this.#wakeups, listener);
  }

  override registerSignalListener(listener: (signal: ClusterSignal) => void): () => void {
    return this.#register(this.#signals, listener);
  }

  override registerCatchUpListener(listener: () => void): () => void {
    return this.#register(this.#catchUps, listener);
  }

  override health(): CoordinatorHealth {
    return { state: 'none' };
  }

  override close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** To be called with each text that arrives. Never throws, whatever the text is. */
  protected receive(text: string): void {
    if (this.#closing) return;
    const envelope = text.length > MAX_BYTES ? undefined : decode(text);
    if (!envelope) {
      this.#ignoreForeign();
      return;
    }
    if (envelope.from === this.#token) return;
    inOwnContext(() => {
      for (const message of envelope.messages) this.#tell(message);
    });
  }

  /** To be called each time that texts begin to arrive, the first time too: what was sent before then was missed. */
  protected caughtUp(): void {
    if (!this.#closing) inOwnContext(() => this.#catchUps.tell(undefined));
  }

  /** Said once: whoever sends such things sends many. */
  #ignoreForeign(): void {
    if (this.#sawForeign) return;
    this.#sawForeign = true;
    this.#log.warn('foreign', 'something arrived that is no message of this version of Ratchet: ignored');
  }

  #publish(message: CoordinatorMessage): void {
    const checked = readMessage(message);
    if (checked) this.#publisher.add(checked);
  }

  #tell(message: CoordinatorMessage): void {
    if (message.kind === 'wakeup') {
      const { lane, priority, source, dueInMs, behind } = message;
      this.#wakeups.tell({
        lane,
        priority,
        source,
        ...(dueInMs === undefined ? {} : { dueInMs }),
        ...(behind === undefined ? {} : { behind }),
      });
    } else {
      this.#signals.tell(message);
    }
  }

  #register<Message>(listeners: Listeners<Message>, listener: (message: Message) => void): () => void {
    const unregister = listeners.add(listener);
    if (!this.#connected && !this.#closing) {
      this.#connected = true;
      inOwnContext(() => this.connect());
    }
    return unregister;
  }

  async #send(messages: readonly CoordinatorMessage[]): Promise<void> {
    await this.broadcast(encode({ from: this.#token, messages }, this.#maxBytes));
  }

  async #close(): Promise<void> {
    await within(clock, LAST_WORD_MS, this.#publisher.close());
    await within(
      clock,
      DISCONNECT_MS,
      Promise.resolve().then(() => this.disconnect()),
    );
  }
}
