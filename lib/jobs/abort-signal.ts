/** A signal that throws when it is asked is no good for going on: it counts as aborted. */
export function isAborted(signal: AbortSignal | undefined): boolean {
  try {
    return signal?.aborted ?? false;
  } catch {
    return true;
  }
}

/** Why it was aborted, or why it does not say. */
export function abortReason(signal: AbortSignal): unknown {
  try {
    return signal.reason as unknown;
  } catch (error) {
    return error;
  }
}

/** By shape: a signal of another realm is as good. */
export function isAbortSignal(value: unknown): value is AbortSignal {
  return (
    typeof value === 'object' &&
    value !== null &&
    'aborted' in value &&
    typeof value.aborted === 'boolean' &&
    'addEventListener' in value &&
    typeof value.addEventListener === 'function' &&
    'removeEventListener' in value &&
    typeof value.removeEventListener === 'function'
  );
}
