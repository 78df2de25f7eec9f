import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** A process that runs {@link file://./node.ts}. */
export class NodeProcess {
  /** Why it ended: an exit code or a signal. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** It serves its lanes. Rejects when it ends before. */
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;

  constructor(
    readonly nodeId: string,
    databaseUrl: string,
  ) {
    this.#child = fork(fileURLToPath(new URL('./node.js', import.meta.url)), [databaseUrl, nodeId]);
    this.ended = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => resolve(code ?? signal));
    });
    this.ready = new Promise((resolve, reject) => {
      this.#child.once('message', () => resolve());
      void this.ended.then((why) => reject(new Error(`${nodeId} ended by itself: ${String(why)}`)));
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
