import { type RatchetExtras } from '../ratchet.extras.js';
import { type RatchetSettings } from '../ratchet.options.js';
import { type ResolvedOptions, resolveOptions } from '../ratchet.resolve.js';
import { TestingNeedsDatabaseError } from './testing-errors.js';

/**
 * What `RatchetTestingModule.forRoot` takes: the settings of `RatchetModule`, so that a test can use the app's own. Those
 * about connections, polling and shutdown are checked and have no effect.
 */
export type RatchetTestingOptions = Omit<RatchetSettings, 'transaction'> &
  Pick<RatchetExtras, 'isGlobal' | 'imports' | 'extraProviders' | 'retryPolicy'> & {
    /** The time at the beginning. It stands still until the tester moves it. @defaultValue the real one */
    startAt?: Date | undefined;
  };

/** Known to `RatchetModule`, and impossible here. */
const NEED_DATABASE: readonly string[] = [
  'dataSource',
  'connection',
  'database',
  'transaction',
  'jobStore',
  'lockStore',
  'scheduleStore',
  'bucketStore',
  'startupCoordinator',
  'coordinator',
  'nodeIdentity',
  'clock',
];
const OF_THE_MODULE: readonly string[] = [
  'isGlobal',
  'imports',
  'extraProviders',
  'retryPolicy',
  'startAt',
] satisfies (keyof RatchetTestingOptions)[];

/**
 * Checked as `RatchetModule` checks them.
 *
 * @throws InvalidOptionError, TestingNeedsDatabaseError
 */
export function resolveTestingOptions(options: RatchetTestingOptions): ResolvedOptions {
  const settings: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(options)) {
    if (NEED_DATABASE.includes(key) && value !== undefined) {
      throw new TestingNeedsDatabaseError(`RatchetTestingModule.forRoot: ${key}`);
    }
    if (!OF_THE_MODULE.includes(key)) settings[key] = value;
  }
  // Nothing is ever opened by that name: the check asks for a database, and there is none.
  return resolveOptions({ ...settings, dataSource: 'none' });
}
