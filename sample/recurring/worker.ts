import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type Ticked } from './tick.jobs.js';

/** A process that runs {@link file://./node.ts}. */
export class Worker {
  /** Why it ended: an exit code or a signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  readonly #child: ChildProcess;

  constructor(
    readonly nodeId: string,
    databaseUrl: string,
    onTick: (worker: Worker, scheduledFor: string) => void,
  ) {
    this.#child = fork(fileURLToPath(new URL('./node.js', import.meta.url)), [databaseUrl, nodeId]);
    this.#child.on('message', (message) => onTick(this, (message as Ticked).scheduledFor));
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(code ?? signal));
    });
  }

  /** As a crash does it. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  stop(): void {
    if (this.#child.connected) this.#child.send('stop');
  }
}
