/** What a bucket knows when it decides about its next turn. */
export interface TurnSituation {
  /** Finished executions that were not sent yet. */
  readonly fresh: number;
  /** Finished ones that an exchange skipped, and whether it is time to send them again. */
  readonly skipped: number;
  readonly skippedDue: boolean;
  readonly progress: number;
  /** Something says that there may be work: a wakeup, a poll, a due time, a full claim. */
  readonly look: boolean;
  readonly freeSlots: number;
  readonly claiming: boolean;
}

/** One exchange claims no more, however many slots are free: its reply must arrive in time, and the next one leaves at once. */
export const MOST_CLAIMS = 500;

/** `undefined`: no turn. Else how many jobs it may claim. */
export function planTurn(situation: TurnSituation): number | undefined {
  const want = situation.claiming ? Math.min(situation.freeSlots, MOST_CLAIMS) : 0;
  const settles =
    situation.fresh > 0 || situation.progress > 0 || (situation.skipped > 0 && situation.skippedDue);
  if (settles) return want;
  return situation.look && want > 0 ? want : undefined;
}

/** How long skipped entries wait before a turn is made for them alone: at first not at all, then longer and longer. */
export function skippedDelayMs(skips: number): number {
  return skips <= 5 ? 0 : Math.min(1_000, 10 * 2 ** (skips - 5));
}
