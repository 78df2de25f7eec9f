import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

interface Pair {
  readonly client: Socket;
  /** It has sent LISTEN. */
  listens: boolean;
  /** A packet of it has vanished: it is of no use any more. */
  harmed: boolean;
}

/** A node's road to the database. Packets can be made to vanish, both ways and without a FIN: a black hole. */
export class Network {
  readonly url: string;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #hole: 'all' | 'listener' | undefined;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async to(target: string): Promise<Network> {
    const { hostname, port } = new URL(target);
    const server = createServer((client) => {
      network.#join(client, connect(Number(port || 5432), hostname));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(target);
    url.hostname = '127.0.0.1';
    url.port = String((server.address() as AddressInfo).port);
    const network = new Network(server, url.href);
    return network;
  }

  /** From now on. New connections are accepted, and silent. */
  swallow(what: 'all' | 'listener'): void {
    this.#hole = what;
  }

  /** Packets pass again. Connections that lost some are cut, as TCP does when it gives up. */
  heal(): void {
    this.#hole = undefined;
    for (const pair of this.#pairs) if (pair.harmed) pair.client.resetAndDestroy();
  }

  async close(): Promise<void> {
    for (const { client } of this.#pairs) client.resetAndDestroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(client: Socket, server: Socket): void {
    const pair: Pair = { client, listens: false, harmed: false };
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.on('error', end);
      socket.on('close', end);
    }
    client.on('data', (chunk) => {
      pair.listens ||= /\blisten\b/i.test(chunk.toString('latin1'));
      if (!this.#vanishes(pair)) server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (!this.#vanishes(pair)) client.write(chunk);
    });
  }

  #vanishes(pair: Pair): boolean {
    const gone = this.#hole === 'all' || (this.#hole === 'listener' && pair.listens);
    pair.harmed ||= gone;
    return gone;
  }
}
