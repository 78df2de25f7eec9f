import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** The payload holds something that JSON or PostgreSQL would refuse or change in silence. */
export class PayloadNotJsonError extends RatchetError {
  override readonly code = 'PAYLOAD_NOT_JSON';

  constructor(
    readonly jobName: string,
    /** Where: `payload.lines[2].due`. */
    readonly path: string,
    problem: string,
    options?: { cause?: unknown },
  ) {
    super(`PAYLOAD_NOT_JSON: ${showValue(jobName)}: ${path} ${problem}`, options);
  }
}

/** One thing that a schema found wrong. */
export interface PayloadIssue {
  /** `payload.lines[2].count` */
  readonly path: string;
  readonly message: string;
}

/** The payload does not pass the definition's schema. */
export class PayloadInvalidError extends RatchetError {
  override readonly code = 'PAYLOAD_INVALID';

  constructor(
    readonly jobName: string,
    readonly issues: readonly PayloadIssue[],
    hint = '',
    options?: { cause?: unknown },
  ) {
    const shown = issues.slice(0, 10).map(({ path, message }) => `${path}: ${message.slice(0, 500)}`);
    if (issues.length > shown.length) shown.push(`and ${issues.length - shown.length} more`);
    super(`PAYLOAD_INVALID: ${showValue(jobName)}: ${shown.join('; ')}${hint}`, options);
  }
}

/** The payload is larger than `limits.payloadBytes`. */
export class PayloadTooLargeError extends RatchetError {
  override readonly code = 'PAYLOAD_TOO_LARGE';

  constructor(
    readonly jobName: string,
    readonly maxBytes: number,
    path = 'payload',
  ) {
    super(
      `PAYLOAD_TOO_LARGE: ${showValue(jobName)}: ${path} is larger than ${maxBytes} bytes; ` +
        'store the data elsewhere and pass its key, or raise limits.payloadBytes',
    );
  }
}

/** The definition's `upcast` failed on a payload that an older version had stored. */
export class PayloadUpcastError extends RatchetError {
  override readonly code = 'PAYLOAD_UPCAST_FAILED';

  constructor(
    readonly jobName: string,
    /** The version that stored the payload. */
    readonly fromVersion: number,
    /** The version of the definition here. */
    readonly toVersion: number,
    reason: string,
    options: { cause: unknown },
  ) {
    super(
      `PAYLOAD_UPCAST_FAILED: ${showValue(jobName)}: upcast from version ${fromVersion} to ${toVersion} threw: ${reason}; ` +
        'mend upcast, and redrive what it has put in the dead letter',
      options,
    );
  }
}
