import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** `classSchema` needs packages that are not installed, or that would not load. */
export class ClassSchemaPackageMissingError extends RatchetError {
  override readonly code = 'CLASS_SCHEMA_PACKAGE_MISSING';

  constructor(
    readonly packageName: string,
    problem: string,
    cause: unknown,
  ) {
    super(
      `CLASS_SCHEMA_PACKAGE_MISSING: classSchema: the package ${packageName} ${problem}; ` +
        'npm install class-validator class-transformer',
      { cause },
    );
  }
}

/** `classSchema` was given something of which no schema can be made. */
export class InvalidClassSchemaError extends RatchetError {
  override readonly code = 'INVALID_CLASS_SCHEMA';

  constructor(
    /** What is wrong: `class`, or an option. */
    readonly key: string,
    readonly value: unknown,
    readonly allowed: string,
    options?: { cause?: unknown },
  ) {
    super(
      `INVALID_CLASS_SCHEMA: classSchema: ${key}: ${showValue(value)} is wrong; allowed: ${allowed}`,
      options,
    );
  }
}
