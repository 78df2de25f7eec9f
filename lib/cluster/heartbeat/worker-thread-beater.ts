import { Worker } from 'node:worker_threads';
import { type BeatAnswer, type NodeRef } from '../../store/membership.js';
import { inOwnContext } from '../../observability/own-context.js';
import { type Clock } from '../clock.js';
import { within } from '../within.js';
import { type Beater, type BeatListener, type BeatState } from './beater.js';

/** What a store gives to a worker thread, so that it can beat on a connection of its own. */
export interface BeatProgram {
  readonly statement: { readonly name?: string; readonly text: string };
  /** Added to the database's clock. */
  readonly offsetMs: number;
  readonly applicationName: string;
  /** Settings for one connect, start-up options included, without functions in them. Asked anew each time. */
  settings(): Promise<object>;
  decode(row: Readonly<Record<string, unknown>> | undefined): BeatAnswer;
  /** What a driver's error, of which the message and the code have come through, means. */
  fault(error: { readonly message: string; readonly code?: string }): Error;
}

export interface WorkerThreadBeaterOptions {
  readonly program: BeatProgram;
  readonly clock: Clock;
  /** For the first connect, if this thread cannot be asked. */
  readonly settings?: object;
  /** The worker goes on so long without a sign of life of the main thread. */
  readonly stallMs: number;
  /** Takes over when no thread can be started. */
  readonly fallback: Beater;
  /** @defaultValue beat-worker.mjs */
  readonly script?: URL;
}

/** Indexes of the shared memory; beat-worker.mjs has the same. */
const ALIVE_AT = 0;
const RUNNING = 1;
const LAG = 2;
const INTERVAL = 3;
/** The time in the lower bits, above them the number of the node's name under which it was sent: one write for both. */
const ACKNOWLEDGED = 4;
/** Number of the last start that came to life. */
const STARTED = 5;
const CELLS = 6;
const TIME_BITS = 44n;

const SCRIPT = new URL('./beat-worker.mjs', import.meta.url);
const STOP_MS = 1_500;
const RESTART_MS = 1_000;
/** A thread that shows no life for so long after its start is ended. */
const START_MS = 10_000;
/** After so many starts in a row without life there will be none. */
const MOST_LIFELESS = 3;
/** A password function that hangs for longer is asked again. */
const SETTINGS_MS = 60_000;

interface FromWorker {
  readonly type: 'answered' | 'failed' | 'settings?' | 'silent' | 'stopped';
  readonly row?: Record<string, unknown>;
  readonly aliveAgoMs?: number;
  readonly node?: NodeRef;
  readonly error?: { readonly message: string; readonly code?: string };
}

/**
 * Beats in a worker thread (beat-worker.mjs). A thread that dies is started again; where none can be started (a bundler left the
 * file out, the permission model forbids threads, the process has too many) the fallback beats.
 */
export class WorkerThreadBeater implements Beater {
  readonly #options: WorkerThreadBeaterOptions;
  readonly #shared = new BigInt64Array(new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT));
  #listener: BeatListener | undefined;
  #state: BeatState | undefined;
  #worker: Worker | undefined;
  #cancelTimer: (() => void) | undefined;
  #starts = 0;
  #lifeless = 0;
  #naming = 0;
  #fallenBack = false;
  #asking = false;
  #stopped = false;
  #exit: Promise<void> = Promise.resolve();

  constructor(options: WorkerThreadBeaterOptions) {
    this.#options = options;
  }

  get acknowledgedAtMs(): number | undefined {
    const { fallback, clock } = this.#options;
    const told = this.#fallenBack ? fallback.acknowledgedAtMs : undefined;
    if (told !== undefined) return told;
    const acknowledged = Atomics.load(this.#shared, ACKNOWLEDGED);
    if (acknowledged === 0n || acknowledged >> TIME_BITS !== BigInt(this.#naming)) return undefined;
    // Threads share the process's clock; ours counts from another beginning.
    return clock.monotonicMs() - (monotonicMs() - Number(BigInt.asUintN(Number(TIME_BITS), acknowledged)));
  }

  start(listener: BeatListener): void {
    this.#listener = listener;
  }

  update(state: BeatState): void {
    if (this.#stopped) return;
    const before = this.#state;
    this.#state = state;
    this.#write(ALIVE_AT, monotonicMs());
    this.#write(RUNNING, state.running);
    this.#write(LAG, state.lagMs);
    this.#write(INTERVAL, state.intervalMs);
    const renamed = before !== undefined && before.node.epoch !== state.node.epoch;
    if (renamed) this.#naming += 1;
    if (this.#fallenBack) this.#options.fallback.update(state);
    else if (!before) this.#start(state);
    else if (renamed) this.#post({ type: 'node', node: state.node, naming: this.#naming });
  }

  beatNow(): void {
    if (this.#fallenBack) this.#options.fallback.beatNow();
    else this.#post({ type: 'now' });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelTimer?.();
    if (this.#fallenBack) await this.#options.fallback.stop();
    const worker = this.#worker;
    if (!worker) return;
    this.#post({ type: 'stop' });
    if (!(await within(this.#options.clock, STOP_MS, this.#exit))) await worker.terminate();
  }

  #start(state: BeatState): void {
    this.#starts += 1;
    try {
      this.#spawn(state);
    } catch (error) {
      this.#listener?.failed(error);
      this.#ended();
    }
  }

  #spawn(state: BeatState): void {
    const { program, stallMs, clock, script = SCRIPT } = this.#options;
    const worker = new Worker(script, {
      workerData: {
        shared: this.#shared.buffer,
        statement: program.statement,
        offsetMs: program.offsetMs,
        applicationName: program.applicationName,
        graceMs: state.graceMs,
        node: state.node,
        naming: this.#naming,
        start: this.#starts,
        stallMs,
        settings: this.#options.settings,
      },
      // Flags of the main thread are its own business (--inspect, --expose-gc, loaders).
      execArgv: [],
    });
    this.#worker = worker;
    worker.unref();
    worker.on('message', (message: FromWorker) => inOwnContext(() => this.#heard(message)));
    worker.on('error', (error) => inOwnContext(() => this.#listener?.failed(error)));
    this.#exit = new Promise((resolve) => {
      worker.once('exit', () => {
        this.#worker = undefined;
        inOwnContext(() => this.#ended());
        resolve();
      });
    });
    this.#cancelTimer = clock.timer(
      START_MS,
      () => {
        if (!this.#isLive()) void worker.terminate();
      },
      true,
    );
  }

  /** Seen without a message, which would wait behind a blocked event loop. */
  #isLive(): boolean {
    return Atomics.load(this.#shared, STARTED) === BigInt(this.#starts);
  }

  #ended(): void {
    this.#cancelTimer?.();
    if (this.#stopped || !this.#state) return;
    this.#lifeless = this.#isLive() ? 0 : this.#lifeless + 1;
    if (this.#lifeless >= MOST_LIFELESS) {
      this.#fallBack(this.#state);
      return;
    }
    this.#cancelTimer = this.#options.clock.timer(RESTART_MS, () => {
      if (!this.#stopped && this.#state) this.#start(this.#state);
    });
  }

  #fallBack(state: BeatState): void {
    const { fallback } = this.#options;
    this.#listener?.changed(
      `the worker thread of the heartbeat (beat-worker.mjs) did not start, ${MOST_LIFELESS} times in a row: heartbeats are sent by the main ` +
        'thread, so a handler that blocks the event loop for longer than the grace makes this node look dead; ' +
        'if you bundle the application, keep nestjs-ratchet external',
    );
    this.#fallenBack = true;
    if (this.#listener) fallback.start(this.#listener);
    fallback.update(state);
  }

  #heard(message: FromWorker): void {
    if (message.type === 'settings?') {
      void this.#answerSettings();
      return;
    }
    if (this.#stopped) return;
    if (message.type === 'silent') this.#listener?.silenced(message.aliveAgoMs ?? 0);
    if (message.error) this.#listener?.failed(this.#options.program.fault(message.error));
    // The answer to a beat under an epoch that this process has left says nothing of it.
    if (message.type === 'answered' && message.node?.epoch === this.#state?.node.epoch) {
      this.#listener?.answered(this.#options.program.decode(message.row));
    }
  }

  /** One question at a time. */
  async #answerSettings(): Promise<void> {
    if (this.#asking) return;
    this.#asking = true;
    const free = (): void => void (this.#asking = false);
    const cancel = this.#options.clock.timer(SETTINGS_MS, free, true);
    await this.#tellSettings();
    cancel();
    free();
  }

  /** Without an answer the worker takes the last ones, or reports that there are none. */
  async #tellSettings(): Promise<void> {
    try {
      this.#post({ type: 'settings', settings: await this.#options.program.settings() });
    } catch (error) {
      if (!this.#stopped) this.#listener?.failed(error);
    }
  }

  #post(message: object): void {
    this.#worker?.postMessage(message);
  }

  #write(index: number, value: number): void {
    Atomics.store(this.#shared, index, BigInt(Math.round(value)));
  }
}

/** `performance.now()` counts from each thread's own beginning. */
function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}
