import { type Socket } from 'node:net';
import { createInterface } from 'node:readline';

/** Calls back with each line. A socket that fails is closed: its `close` event says the rest. */
export function linesOf(socket: Socket, onLine: (line: string) => void): void {
  const fail = (): void => void socket.destroy();
  socket.on('error', fail);
  // readline repeats the errors of its input as its own.
  createInterface({ input: socket }).on('line', onLine).on('error', fail);
}
