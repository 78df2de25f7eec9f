import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { linesOf } from './lines-of.js';

/** Passes each line that one connection sends on to all the others. It keeps nothing. */
export class Hub {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((socket) => this.#welcome(socket));
  }

  /** @returns the port: the given one, or a free one for 0. */
  async listen(port = 0): Promise<number> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #welcome(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    linesOf(socket, (line) => {
      for (const other of this.#sockets) if (other !== socket) other.write(`${line}\n`);
    });
  }
}
