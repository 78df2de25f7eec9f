import { SystemClock } from '../cluster/clock.js';
import { type EngineParts } from '../engine/engine-parts.js';
import { RatchetRuntime } from '../engine/runtime.js';
import { DebugPoints } from '../observability/debug-points.js';
import { type RatchetTester } from './ratchet-tester.js';

/** A runtime without a worker makes no executor, and its clock only bounds the shutdown, in real time. */
export type ManualRuntimeParts = Omit<EngineParts, 'executor' | 'beater' | 'clock' | 'debug'>;

/** The runtime of an application under test: it starts nothing, and its jobs run when the tester says so. */
export class ManualRuntime extends RatchetRuntime {
  constructor(
    parts: ManualRuntimeParts,
    readonly tester: RatchetTester,
  ) {
    super({
      ...parts,
      settings: { ...parts.settings, worker: false },
      clock: new SystemClock(),
      debug: new DebugPoints(),
      beater: () => Promise.reject(new TypeError('a runtime that runs nothing has no heartbeat')),
      executor: () => {
        throw new TypeError('the tester runs the jobs, not the runtime');
      },
    });
  }

  /** The annotated schedules are there from then on, as those of a node that has started. */
  override async start(): Promise<void> {
    await super.start();
    await this.tester.register();
  }

  override get running(): number {
    return this.tester.running;
  }

  override async close(): Promise<void> {
    await this.tester.close();
    await super.close();
  }
}
