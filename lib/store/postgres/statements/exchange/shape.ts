import { type ExchangeRequest } from '../../../job-store.js';

/**
 * Which parts a turn needs. A statement is put together of those alone, since a part that does nothing still costs its start
 * (a turn that claims nothing has no claim in its statement); each shape is prepared once.
 */
export interface ExchangeShape {
  /** Waits for locked rows instead of skipping them. */
  readonly wait: boolean;
  /** Some of what it settles has failed for good. */
  readonly failing: boolean;
  /** It claims. */
  readonly claiming: boolean;
  /** Its bucket claims ahead: start marks are written and forgotten. */
  readonly marking: boolean;
}

export function shapeOf({ wait, settle, want, ahead }: ExchangeRequest): ExchangeShape {
  return {
    wait,
    failing: settle.some(({ outcome }) => outcome === 'failed'),
    claiming: want > 0,
    marking: ahead !== undefined,
  };
}

export function shapeName(shape: ExchangeShape): string {
  const parts = (['wait', 'failing', 'claiming', 'marking'] as const).filter((part) => shape[part]);
  return ['ratchet-exchange', ...parts].join('-');
}
