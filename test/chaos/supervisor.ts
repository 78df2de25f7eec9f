import { type ChaosFixture } from './chaos-fixture.js';
import { Network } from './network.js';
import { type WorkerProcess } from './worker-process.js';

/** One place for a node: whenever its process ends, another is started, on the same road to the database. */
export class Supervisor {
  readonly network: Network;
  readonly #chaos: ChaosFixture;
  readonly #options: Record<string, unknown>;
  #worker: WorkerProcess;
  #name: string;
  #renames = 0;
  #over = false;
  readonly #ended: Promise<void>;

  private constructor(
    chaos: ChaosFixture,
    network: Network,
    readonly place: string,
    options: Record<string, unknown>,
  ) {
    this.#chaos = chaos;
    this.network = network;
    this.#options = options;
    this.#name = place;
    this.#worker = this.#start();
    this.#ended = this.#keep();
  }

  /** @param url - the database, as the node is to reach it. */
  static async of(
    chaos: ChaosFixture,
    url: string,
    place: string,
    options: Record<string, unknown>,
  ): Promise<Supervisor> {
    return new Supervisor(chaos, await Network.to(url), place, options);
  }

  get worker(): WorkerProcess {
    return this.#worker;
  }

  /** The next process has another node id, as the next pod of a deployment has. */
  rename(): void {
    this.#renames += 1;
    this.#name = `${this.place}-${String(this.#renames)}`;
  }

  /** The last process drains and ends. */
  async end(): Promise<void> {
    this.#over = true;
    this.#worker.kill('SIGCONT');
    this.#worker.kill('SIGTERM');
    await this.#ended;
    await this.network.close();
  }

  #start(): WorkerProcess {
    return this.#chaos.start(this.#options, this.#name, { url: this.network.url });
  }

  async #keep(): Promise<void> {
    for (;;) {
      await this.#worker.exited;
      if (this.#over) return;
      this.#worker = this.#start();
    }
  }
}
