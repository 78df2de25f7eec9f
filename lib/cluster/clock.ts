/** Timers and log stamps. Never used to compare with times of the database or of another node. */
export abstract class Clock {
  /** Monotonic milliseconds. */
  abstract monotonicMs(): number;
  /** Wall clock, for logs only. */
  abstract now(): Date;
  /** Calls back once after `ms` (any length: longer than 2^31 ms works). Returns the function that cancels. Timers do not keep the process alive when `background`. */
  abstract timer(ms: number, callback: () => void, background?: boolean): () => void;
}

const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** Node's own timers. */
export class SystemClock extends Clock {
  override monotonicMs(): number {
    return performance.now();
  }

  override now(): Date {
    return new Date();
  }

  override timer(ms: number, callback: () => void, background = false): () => void {
    let handle: NodeJS.Timeout;
    const arm = (left: number): void => {
      const step = Math.min(left, LONGEST_TIMEOUT_MS);
      handle = setTimeout(() => (left > step ? arm(left - step) : callback()), step);
      if (background) handle.unref();
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(handle);
  }
}
