import { Logger } from '@nestjs/common';
import { type BeatAnswer, type BeatRequest } from '../../store/membership.js';
import { type Clock } from '../clock.js';
import { type Beater } from './beater.js';
import { MainThreadBeater } from './main-thread-beater.js';
import { type BeatProgram, WorkerThreadBeater } from './worker-thread-beater.js';

interface BeatingStore {
  beat(request: BeatRequest): Promise<BeatAnswer>;
  beatProgram?(): Promise<BeatProgram | undefined>;
}

/** In a worker thread where the store has a program for one and its settings can be given to it, else in the main thread. */
export async function beaterOf(store: BeatingStore, clock: Clock, stallMs: number): Promise<Beater> {
  const program = await store.beatProgram?.();
  const fallback = new MainThreadBeater(store, clock);
  if (program) {
    // With the first ones in hand the thread connects although a handler may block this one from its first moment on.
    const settings = await program.settings().catch(() => undefined);
    return new WorkerThreadBeater({ program, clock, stallMs, fallback, ...(settings ? { settings } : {}) });
  }
  if (store.beatProgram) {
    new Logger('RatchetCluster').warn(
      'the connection settings have functions in them (stream, ssl callbacks), which no worker thread can be given: heartbeats are sent by the ' +
        'main thread, so a handler that blocks the event loop for longer than the grace makes this node look dead',
    );
  }
  return fallback;
}
