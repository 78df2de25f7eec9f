import { connect, type Socket } from 'node:net';
import { BroadcastCoordinator, type CoordinatorHealth } from 'nestjs-ratchet';
import { linesOf } from './lines-of.js';

const RETRY_MS = 200;

/**
 * Carries wakeups through a {@link Hub}: what a coordinator of your own takes. `BroadcastCoordinator` does the rest: it gathers,
 * checks, tries again, and keeps a process from hearing itself.
 */
export class HubCoordinator extends BroadcastCoordinator {
  #socket: Socket | undefined;
  #state: 'connecting' | 'connected' | 'down' | 'none' = 'none';
  #retry: NodeJS.Timeout | undefined;

  constructor(private readonly port: number) {
    super();
  }

  override health(): CoordinatorHealth {
    return { state: this.#state };
  }

  protected override connect(): void {
    this.#open();
  }

  protected override async broadcast(texts: readonly string[]): Promise<void> {
    const socket = this.#open();
    // A write that fails rejects, and the messages are sent again.
    await new Promise<void>((resolve, reject) => {
      const fail = (): void => reject(new Error('the hub is away'));
      socket.once('close', fail);
      socket.write(texts.map((text) => `${text}\n`).join(''), (error) => {
        socket.off('close', fail);
        if (error) reject(error);
        else resolve();
      });
    });
  }

  protected override disconnect(): Promise<void> {
    clearTimeout(this.#retry);
    const socket = this.#socket?.removeAllListeners('close');
    this.#state = 'none';
    return new Promise((resolve) => {
      if (!socket) resolve();
      // What was written last still goes out.
      else socket.once('close', () => resolve()).destroySoon();
    });
  }

  #open(): Socket {
    if (this.#socket) return this.#socket;
    if (this.#state === 'none') this.#state = 'connecting';
    const socket = connect(this.port, '127.0.0.1');
    this.#socket = socket;
    linesOf(socket, (line) => this.receive(line));
    socket.on('connect', () => {
      this.#state = 'connected';
      this.caughtUp();
    });
    socket.on('close', () => {
      this.#socket = undefined;
      this.#state = 'down';
      this.#retry = setTimeout(() => this.#open(), RETRY_MS);
    });
    return socket;
  }
}
