import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compileFolder, type Mutation } from '../support/compile.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Compiles the library for the workers, as it is or broken on purpose. Returns what to hand to {@link WorkerProcess}. */
export function compileLibrary(name: string, mutations: readonly Mutation[] = []): string {
  const folder = join(ROOT, '.ratchet', 'chaos', name);
  rmSync(folder, { recursive: true, force: true });
  compileFolder(join(ROOT, 'lib'), folder, mutations);
  return pathToFileURL(join(folder, 'index.js')).href;
}

/** Events of the worker script itself, and of the engine in it (lib/observability/engine-events.ts). */
export interface WorkerEvent {
  readonly event:
    | 'ready'
    | 'begin'
    | 'abort'
    | 'child'
    | 'freezing'
    | 'failed'
    | 'ended'
    | 'exit'
    | 'unhandledRejection'
    | 'registered'
    | 'declared_dead'
    | 'node_dead'
    | 'lease'
    | 'rescued'
    | 'lost'
    | 'late'
    | 'loop_lag'
    | 'coordinator'
    | 'fallback';
  readonly pid: number;
  readonly job?: string;
  readonly jobId?: string;
  readonly seq?: string;
  readonly name?: string;
  readonly reason?: string;
  readonly answer?: string;
  readonly node?: string;
  readonly epoch?: string;
  readonly held?: boolean;
  readonly recorded?: boolean;
  readonly recovered?: number;
  readonly state?: string;
  readonly lane?: string;
  readonly change?: string;
  readonly lagMs?: number;
  readonly handlers?: readonly string[];
}

export interface WorkerOptions {
  readonly library: string;
  readonly url: string;
  /** For the side tables: not by the road that the test may block. */
  readonly sideUrl: string;
  readonly nodeId: string;
  readonly options: Record<string, unknown>;
  readonly script?: string;
}

/** A real process with a real node in it, and what it says. */
export class WorkerProcess {
  readonly events: WorkerEvent[] = [];
  /** Everything it wrote that is no event: log lines. */
  readonly log: string[] = [];
  readonly nodeId: string;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();

  constructor({ library, url, sideUrl, nodeId, options, script = './worker.mjs' }: WorkerOptions) {
    this.nodeId = nodeId;
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#child = spawn(process.execPath, [path, url, nodeId, JSON.stringify(options), library, sideUrl], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    const hear = (line: string): void => {
      if (line.startsWith('{"event"')) this.events.push(JSON.parse(line) as WorkerEvent);
      else this.log.push(line);
      for (const wake of this.#waiting) wake();
    };
    createInterface({ input: this.#child.stdout! }).on('line', hear);
    createInterface({ input: this.#child.stderr! }).on('line', hear);
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        resolve({ code, signal });
        for (const wake of this.#waiting) wake();
      });
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** It ended without a drain. */
  get crashed(): boolean {
    return this.#child.signalCode === 'SIGKILL' || this.#child.signalCode === 'SIGABRT';
  }

  /** Resolves with the n-th event (from 1) that matches; rejects with the log when the process ends first. */
  async until(match: (event: WorkerEvent) => boolean, count = 1): Promise<WorkerEvent> {
    for (;;) {
      const found = this.events.filter(match);
      const event = found[count - 1];
      if (event) return event;
      if (!this.alive) throw new Error(`the worker ended first:\n${this.log.join('\n')}`);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  ready(): Promise<WorkerEvent> {
    return this.until((event) => event.event === 'ready');
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.#child.kill(signal);
  }

  /** SIGKILL, and wait until it is gone. */
  async end(): Promise<void> {
    if (this.alive) {
      this.kill('SIGCONT');
      this.kill('SIGKILL');
    }
    await this.exited;
  }
}
