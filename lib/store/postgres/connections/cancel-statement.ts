import { connect, type Socket } from 'node:net';
import { within } from './sockets.js';

const CANCEL_REQUEST = 80_877_102;
const CANCEL_MS = 1_000;

/** What pg's client knows of its session. */
interface Session {
  readonly host?: string;
  readonly port?: number;
  readonly processID?: number | null;
  readonly secretKey?: number | null;
}

/**
 * Asks the server to end the statement that runs on a connection: a closed socket is noticed only when the statement is over.
 * As a request of the protocol, since a pooler between us and the server passes that on, and no second connection of the pool is
 * needed. Best effort, bounded in time, never rejects. The request may strike late: the connection must not be used for other work.
 */
export async function cancelStatement(client: object): Promise<void> {
  const { host = 'localhost', port = 5432, processID, secretKey } = client as Session;
  if (typeof processID !== 'number' || typeof secretKey !== 'number') return;
  const request = Buffer.alloc(16);
  [16, CANCEL_REQUEST, processID, secretKey].forEach((word, index) => request.writeInt32BE(word, index * 4));
  const socket = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${String(port)}`) : connect(port, host);
  await within(CANCEL_MS, handled(socket, request));
  socket.destroy();
}

/** The server closes the connection once it has passed the request on. */
function handled(socket: Socket, request: Buffer): Promise<void> {
  return new Promise((resolve) => {
    socket.on('error', () => resolve());
    socket.on('close', () => resolve());
    socket.on('connect', () => socket.write(request));
    // Else the end of the stream is never noticed.
    socket.resume();
  });
}
