import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A road to the test server that an engine test can block: whole outages, and replies lost after a given statement. */
export interface FlakyNetwork {
  readonly url: string;
  /** Cuts all connections and refuses new ones, as a stopped server does. */
  refuse(): void;
  /** Keeps connections open and silent: packets vanish both ways, no FIN. */
  swallow(): void;
  /** Drops the connection instead of the next reply to a request that matches. Resolves when it happened. */
  loseReplyTo(request: RegExp): Promise<void>;
  /** Back to normal; connections that were swallowed are cut. */
  restore(): void;
  /** Connections that have ended so far. */
  readonly ended: number;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  doomed: boolean;
}

export async function createFlakyNetwork(targetUrl: string): Promise<FlakyNetwork> {
  const target = new URL(targetUrl);
  const pairs = new Set<Pair>();
  let ended = 0;
  let mode: 'pass' | 'refuse' | 'swallow' = 'pass';
  let losing: { request: RegExp; lost: () => void } | undefined;
  const cut = (): void => {
    for (const { client } of pairs) client.resetAndDestroy();
  };
  const listener = createServer((client) => {
    client.on('error', () => {});
    if (mode === 'refuse') {
      client.resetAndDestroy();
      return;
    }
    const server = connect(Number(target.port || 5432), target.hostname);
    const pair: Pair = { client, doomed: false };
    pairs.add(pair);
    const end = (): void => {
      if (pairs.delete(pair)) ended += 1;
      client.destroy();
      server.destroy();
    };
    server.on('error', end);
    server.on('close', end);
    client.on('close', end);
    client.on('data', (chunk) => {
      if (mode === 'swallow') return;
      if (losing?.request.test(chunk.toString('latin1'))) pair.doomed = true;
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (mode === 'swallow') return;
      if (!pair.doomed) {
        client.write(chunk);
        return;
      }
      // The server has answered, so the statement is committed; nobody will hear of it.
      losing?.lost();
      losing = undefined;
      client.resetAndDestroy();
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const url = new URL(targetUrl);
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as AddressInfo).port);
  return {
    url: url.href,
    get ended() {
      return ended;
    },
    refuse() {
      mode = 'refuse';
      cut();
    },
    swallow() {
      mode = 'swallow';
    },
    loseReplyTo: (request) => new Promise((lost) => (losing = { request, lost })),
    restore() {
      if (mode === 'swallow') cut();
      mode = 'pass';
    },
    close() {
      cut();
      return new Promise((resolve) => listener.close(() => resolve()));
    },
  };
}
