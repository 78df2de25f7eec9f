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
  /** Somebody may have paused the lane or asked for the bucket's end, and jobs wait in the buffer: a turn is made to hear of it. */
  readonly ask: boolean;
  readonly freeSlots: number;
  readonly claiming: boolean;
  /** Jobs that were claimed ahead, and how many may be. */
  readonly buffered: number;
  readonly bufferSize: number;
}

export interface TurnPlan {
  /** How many jobs it may claim, `beginNow` of them into free slots. */
  readonly want: number;
  readonly beginNow: number;
  /** How many of those that were claimed ahead begin. */
  readonly begin: number;
}

/** One exchange claims no more, however many slots are free: its reply must arrive in time, and the next one leaves at once. */
export const MOST_CLAIMS = 500;

const NOTHING: TurnPlan = { want: 0, beginNow: 0, begin: 0 };

/** `undefined`: no turn. */
export function planTurn(situation: TurnSituation): TurnPlan | undefined {
  const plan = situation.claiming ? planClaims(situation) : NOTHING;
  const settles =
    situation.fresh > 0 || situation.progress > 0 || (situation.skipped > 0 && situation.skippedDue);
  if (settles || situation.ask || plan.begin > 0) return plan;
  return situation.look && plan.want > 0 ? plan : undefined;
}

/**
 * What was claimed ahead begins first. A claim is made for slots that stay free, and for the buffer once it is half empty, so that
 * most turns have no claim in their statement; such a claim waits for a free slot, and keeps one to begin its first job in, since a
 * job that may be a poison pill is claimed first and never waits in a buffer.
 */
function planClaims({ look, freeSlots, buffered, bufferSize }: TurnSituation): TurnPlan {
  if (bufferSize === 0 && buffered === 0) {
    const want = Math.min(freeSlots, MOST_CLAIMS);
    return { want, beginNow: want, begin: 0 };
  }
  const refill = look && freeSlots > 0 && buffered * 2 <= bufferSize;
  const begin = Math.min(buffered, refill ? freeSlots - 1 : freeSlots, MOST_CLAIMS);
  const spare = freeSlots - begin;
  if (spare === 0) return { want: 0, beginNow: 0, begin };
  const room = look ? Math.max(0, bufferSize - (buffered - begin)) : 0;
  const want = Math.min(spare + room, MOST_CLAIMS);
  return { want, beginNow: Math.min(spare, want), begin };
}

/** How long skipped entries wait before a turn is made for them alone: at first not at all, then longer and longer. */
export function skippedDelayMs(skips: number): number {
  return skips <= 5 ? 0 : Math.min(1_000, 10 * 2 ** (skips - 5));
}
