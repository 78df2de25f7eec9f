import { RatchetError } from './ratchet-error.js';

/** `RatchetHealthModule` needs `@nestjs/terminus`, which is not installed, or would not load. */
export class HealthPackageMissingError extends RatchetError {
  override readonly code = 'HEALTH_PACKAGE_MISSING';

  constructor(problem: string, cause: unknown) {
    super(
      `HEALTH_PACKAGE_MISSING: RatchetHealthModule: the package @nestjs/terminus ${problem}; npm install @nestjs/terminus`,
      { cause },
    );
  }
}
