import {
  type ClusterCoordinator,
  type ClusterSignal,
  type Wakeup,
} from '../../cluster/cluster-coordinator.js';
import { type ContractRunner } from './contract-runner.js';

/** An implementation of {@link ClusterCoordinator} to examine, on a transport that nothing else uses. */
export interface CoordinatorSubject {
  /** One coordinator more on the same transport, as another process would make it. The suite closes it. */
  create(): ClusterCoordinator | Promise<ClusterCoordinator>;
  /** Cuts the transport off for all coordinators, as an outage would; needed for `canBeCut`. */
  cutTransport?(): Promise<void> | void;
  restoreTransport?(): Promise<void> | void;
  /** Called once at the end. */
  close(): Promise<void> | void;
}

/** The longest that a message may take in the suite, an outage that has just ended included. */
const PATIENCE_MS = 15_000;
const AGAIN_MS = 25;

/** One coordinator, and what it has heard. */
export class ContractParty {
  readonly wakeups: Wakeup[] = [];
  readonly signals: ClusterSignal[] = [];
  catchUps = 0;
  readonly off: readonly (() => void)[];

  constructor(
    readonly name: string,
    readonly coordinator: ClusterCoordinator,
  ) {
    this.off = [
      coordinator.registerWakeupListener((wakeup) => void this.wakeups.push(wakeup)),
      coordinator.registerSignalListener((signal) => void this.signals.push(signal)),
      coordinator.registerCatchUpListener(() => void (this.catchUps += 1)),
    ];
  }

  /** Tells of work in a lane. */
  wake(lane: string): void {
    this.coordinator.notifyNewWork(2, this.name, lane);
  }

  hasHeard(lane: string): boolean {
    return this.wakeups.some((wakeup) => wakeup.lane === lane);
  }
}

/** Short words for the suite's tests. Every test works in lanes of its own. */
export class CoordinatorBench {
  readonly #open: ClusterCoordinator[] = [];
  #lanes = 0;
  #subject: CoordinatorSubject | undefined;

  constructor(
    readonly runner: ContractRunner,
    readonly carries: boolean,
    private readonly make: () => Promise<CoordinatorSubject>,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  get subject(): CoordinatorSubject {
    if (!this.#subject) throw new Error('The factory of the contract suite has failed');
    return this.#subject;
  }

  async open(): Promise<void> {
    this.#subject = await this.make();
  }

  /** Two tests never hear each other. */
  lane(): string {
    this.#lanes += 1;
    return `contract-${String(this.#lanes)}`;
  }

  async create(): Promise<ClusterCoordinator> {
    const coordinator = await this.subject.create();
    this.#open.push(coordinator);
    return coordinator;
  }

  /** Coordinators that hear each other. */
  async parties(...names: string[]): Promise<ContractParty[]> {
    const parties: ContractParty[] = [];
    for (const name of names) parties.push(new ContractParty(name, await this.create()));
    if (this.carries) await this.hearEachOther(parties);
    return parties;
  }

  /** Hints may be lost until everyone is connected: they are repeated until each has heard each. */
  async hearEachOther(parties: readonly ContractParty[]): Promise<void> {
    for (const speaker of parties) {
      const lane = this.lane();
      const others = parties.filter((party) => party !== speaker);
      await this.until(`${speaker.name} is heard by the others`, () => {
        speaker.wake(lane);
        return others.every((party) => party.hasHeard(lane));
      });
    }
  }

  /** Resolves when all that was told before has been heard: one process tells in order. */
  async heardSoFar(speaker: ContractParty, ...listeners: readonly ContractParty[]): Promise<void> {
    const lane = this.lane();
    await this.until(`the others hear what ${speaker.name} says last`, () => {
      speaker.wake(lane);
      return listeners.every((party) => party.hasHeard(lane));
    });
  }

  /** Asks again and again: what it waits for may need any number of tries. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const untilMs = performance.now() + this.patienceMs;
    while (!isSo()) {
      if (performance.now() > untilMs) throw new Error(`Not within ${String(this.patienceMs)} ms: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }

  /** What `work` resolves to, or an error that names it. */
  async soon<T>(what: string, work: Promise<T>): Promise<T> {
    let guard: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      guard = setTimeout(
        () => reject(new Error(`Not within ${String(this.patienceMs)} ms: ${what}`)),
        this.patienceMs,
      );
    });
    return Promise.race([work, late]).finally(() => clearTimeout(guard));
  }

  async closeAll(): Promise<void> {
    await this.soon('close', Promise.all(this.#open.splice(0).map((coordinator) => coordinator.close())));
  }

  async end(): Promise<void> {
    await this.closeAll();
    await this.#subject?.close();
  }
}
