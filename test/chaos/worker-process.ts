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

export interface WorkerEvent {
  readonly event: 'ready' | 'begin' | 'poison' | 'abort' | 'exit' | 'unhandledRejection';
  readonly pid: number;
  readonly job?: string;
  readonly seq?: string;
  readonly reason?: string;
}

/** A real process with a real node in it, and what it says. */
export class WorkerProcess {
  readonly events: WorkerEvent[] = [];
  /** Everything it wrote that is no event: log lines. */
  readonly log: string[] = [];
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();

  constructor(library: string, url: string, nodeId: string, options: Record<string, unknown> = {}) {
    this.#child = spawn(
      process.execPath,
      [
        fileURLToPath(new URL('./worker.mjs', import.meta.url)),
        url,
        nodeId,
        JSON.stringify(options),
        library,
      ],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_OPTIONS: '' } },
    );
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
