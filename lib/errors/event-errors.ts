import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';

/** `RatchetEvents.on` was asked for an event that there is not. */
export class UnknownEventError extends RatchetError {
  override readonly code = 'UNKNOWN_EVENT';

  constructor(
    readonly event: unknown,
    near: string | undefined,
    known: readonly string[],
  ) {
    super(
      `UNKNOWN_EVENT: RatchetEvents.on: there is no event ${showValue(event)}; ` +
        (near ? `did you mean '${near}'?` : `there are ${known.join(', ')}`),
    );
  }
}

/** What `RatchetEvents.on` was given to call cannot be called. */
export class InvalidListenerError extends RatchetError {
  override readonly code = 'INVALID_LISTENER';

  constructor(
    readonly event: string,
    listener: unknown,
  ) {
    super(
      `INVALID_LISTENER: RatchetEvents.on('${event}'): ${showValue(listener)} is no function; give one that takes the event`,
    );
  }
}
