import { clearTimeout as clear, setImmediate as immediate, setTimeout as timeout } from 'node:timers';

// Imported, not the globals: a test runner's fake timers would stop those.

/** Enough for handlers that only wait for promises. */
const TURNS = 3;
/** Enough for handlers that wait for a database or a file. */
const SOON_MS = 250;

/** Lets running handlers get on. */
export async function eventLoopTurns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>((resolve) => immediate(resolve));
}

/** Waits for what ought to end now, but not for ever: a handler may ignore its signal. */
export async function endedSoon(ending: Promise<void>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = timeout(resolve, SOON_MS);
    void ending.then(() => {
      clear(timer);
      resolve();
    });
  });
}
