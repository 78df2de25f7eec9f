import { type Client } from 'pg';
import { SystemClock } from '../../../cluster/clock.js';
import { within as withinOn } from '../../../cluster/within.js';
import { StoreError } from '../../store-fault.js';

/** Cuts a connection off: pg's own `end()` waits for a server that may be gone. */
export function destroySocket(client: object | undefined): void {
  const { connection } = (client ?? {}) as Partial<Client> & {
    connection?: { stream: { destroy(): void } };
  };
  connection?.stream.destroy();
}

/** The reply to what was sent on a connection. After `ms` of silence its socket is destroyed and the outcome is unknown. */
export async function guarded<T>(client: object, ms: number, reply: Promise<T>): Promise<T> {
  let guard: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_, reject) => {
    guard = setTimeout(() => {
      destroySocket(client);
      reject(new StoreError('unknown', `STORE_FAULT: no reply within ${String(ms)} ms`, 'ETIMEDOUT'));
    }, ms);
  });
  // When the guard wins, the reply is rejected later, by the socket's end.
  reply.catch(() => undefined);
  try {
    return await Promise.race([reply, silence]);
  } finally {
    clearTimeout(guard);
  }
}

const clock = new SystemClock();

/** True when `work` ended in time, well or not. In real time: a socket knows no other. */
export function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  return withinOn(clock, ms, work);
}
