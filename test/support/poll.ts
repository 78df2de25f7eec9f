import { type EngineSettings } from '../../lib/engine/engine-settings.js';
import { type Duration } from '../../lib/index.js';

/** The same wait whatever happens, as settings of the engine. */
export function pollEvery(ms: number): Pick<EngineSettings, 'poll'> {
  return { poll: { burstMs: ms, minMs: ms, maxMs: ms, deepIdleMs: ms, deepIdleAfterMs: 300_000 } };
}

/** The same wait whatever happens, as an option of the module. With `'1h'` nothing is found by polling while a test runs. */
export function pollOption<D extends Duration>(wait: D): Record<'burst' | 'min' | 'max' | 'deepIdle', D> {
  return { burst: wait, min: wait, max: wait, deepIdle: wait };
}
