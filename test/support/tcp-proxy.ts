import { connect, createServer, type Socket } from 'node:net';

/** A proxy in front of the test server: can swallow packets both ways without a FIN, and cut connections. */
export interface TcpProxy {
  readonly url: string;
  /** Packets disappear from now on; connections stay open. */
  freeze(): void;
  thaw(): void;
  /** The next reply of the server is swallowed, and the connection cut after it. */
  loseNextReply(): void;
  cut(): void;
  /** Cuts every new connection at once, as a server that is still starting. */
  refuse(yes: boolean): void;
  /** Resolves when a connection was refused. */
  refused(): Promise<void>;
  /** Resolves when the next connection is there. */
  connected(): Promise<void>;
  close(): Promise<void>;
}

export async function createTcpProxy(target: string): Promise<TcpProxy> {
  const upstream = new URL(target);
  const sockets = new Set<Socket>();
  let frozen = false;
  let losing = false;
  let refusing = false;
  let onRefused: (() => void) | undefined;
  let onConnected: (() => void) | undefined;
  const server = createServer((down) => {
    if (refusing) {
      down.on('error', () => {});
      down.resetAndDestroy();
      onRefused?.();
      return;
    }
    onConnected?.();
    const up = connect(Number(upstream.port), upstream.hostname);
    for (const socket of [down, up]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        up.destroy();
        down.destroy();
      });
    }
    down.on('data', (chunk) => {
      if (!frozen) up.write(chunk);
    });
    up.on('data', (chunk) => {
      if (frozen) return;
      if (losing) {
        losing = false;
        down.destroy();
        return;
      }
      down.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(target);
  url.hostname = '127.0.0.1';
  url.port = String((server.address() as { port: number }).port);
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    freeze: () => (frozen = true),
    thaw: () => (frozen = false),
    loseNextReply: () => (losing = true),
    cut,
    refuse: (yes) => (refusing = yes),
    refused: () => new Promise((resolve) => (onRefused = resolve)),
    connected: () => new Promise((resolve) => (onConnected = resolve)),
    async close() {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
