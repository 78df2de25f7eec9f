import fc from 'fast-check';
import { type TestDatabase } from '../support/database.js';
import { check, heal } from './fleet-check.js';
import { type Command, command } from './fleet-commands.js';
import { type FleetStore } from './fleet-store.js';
import { FleetWorld } from './fleet-world.js';

/** Every command is followed by a look at everything, and the last one by the end of all jobs. */
export function fleetProperty(
  fleet: FleetStore,
  database: TestDatabase,
): fc.IAsyncProperty<[readonly Command[]]> {
  const commands = fc.array(command, { minLength: 20, maxLength: 40, size: 'max' });
  return fc.asyncProperty(commands, async (given) => {
    const world = await FleetWorld.create(fleet, database);
    for (const each of given) {
      await world.run(each);
      await check(world);
    }
    await heal(world);
  });
}

/**
 * `RATCHET_PROPERTY_RUNS`: how many; `RATCHET_PROPERTY_SEED` and `RATCHET_PROPERTY_PATH`: those of a report. Without a seed the first
 * failure is reported as it is; with one it is made smaller first, which takes its time.
 */
export function propertySettings(): {
  numRuns: number;
  seed?: number;
  path?: string;
  endOnFailure: boolean;
  includeErrorInReport: boolean;
} {
  const {
    RATCHET_PROPERTY_RUNS: runs = '25',
    RATCHET_PROPERTY_SEED: seed,
    RATCHET_PROPERTY_PATH: path,
  } = process.env;
  return {
    numRuns: Number(runs),
    includeErrorInReport: true,
    endOnFailure: seed === undefined,
    ...(seed === undefined ? {} : { seed: Number(seed) }),
    ...(path === undefined ? {} : { path }),
  };
}
