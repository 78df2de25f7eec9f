import { type Clock } from './clock.js';

/** Waits for `work`, but no longer than `ms`. False: the time was up (the work goes on). A rejection counts as done. */
export function within(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.timer(ms, () => resolve(false));
    const done = (): void => {
      cancel();
      resolve(true);
    };
    work.then(done, done);
  });
}
