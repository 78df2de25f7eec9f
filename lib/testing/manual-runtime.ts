import { SystemClock } from '../cluster/clock.js';
import { type EngineParts } from '../engine/engine-parts.js';
import { RatchetRuntime } from '../engine/runtime.js';
import { DebugPoints } from '../observability/debug-points.js';
import { type RatchetTester } from './ratchet-tester.js';

/** A runtime without a worker makes no executor, and its clock only bounds the shutdown, in real time. */
export type ManualRuntimeParts = Omit<EngineParts, 'executor' | 'clock' | 'debug'>;

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
      executor: () => {
        throw new TypeError('the tester runs the jobs, not the runtime');
      },
    });
  }

  override get running(): number {
    return this.tester.running;
  }

  override async close(): Promise<void> {
    await this.tester.close();
    await super.close();
  }
}
