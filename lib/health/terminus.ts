import { HealthPackageMissingError } from '../index.js';
import { type HealthDetails, type HealthResult } from './health-result.js';

/** What is used of the `HealthIndicatorService` of terminus 11 and 12. */
export abstract class HealthSessions {
  abstract check<const K extends string>(
    key: K,
  ): {
    up(details: HealthDetails): HealthResult<K>;
    down(details: HealthDetails): HealthResult<K>;
  };
}

/**
 * The optional package, loaded when the module boots, so that a missing one can be named.
 *
 * @throws HealthPackageMissingError
 */
export async function loadTerminus(
  load: () => Promise<{ HealthIndicatorService: new () => HealthSessions }> = () =>
    import('@nestjs/terminus'),
): Promise<HealthSessions> {
  try {
    const { HealthIndicatorService } = await load();
    return new HealthIndicatorService();
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    const absent = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    throw new HealthPackageMissingError(
      absent ? 'is not installed' : 'could not be loaded (11 or 12 is needed)',
      error,
    );
  }
}
