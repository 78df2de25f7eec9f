import { type Client } from 'pg';

/** Cuts a connection off: pg's own `end()` waits for a server that may be gone. */
export function destroySocket(client: object | undefined): void {
  const { connection } = (client ?? {}) as Partial<Client> & {
    connection?: { stream: { destroy(): void } };
  };
  connection?.stream.destroy();
}

/** True when `work` ended in time, well or not. */
export async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const ended = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}
