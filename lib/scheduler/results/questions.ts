/** Ids that one statement asks for, at most. */
const MOST_IDS = 5_000;
/** Between the beginnings of two statements: at most 20 a second. */
const LEAST_GAP_MS = 50;
const FIRST_INTERVAL_MS = 50;
const LONGEST_INTERVAL_MS = 1_000;

/** One statement. */
export interface Question {
  readonly ids: readonly string[];
  /** So many of the ids, the first ones, are new or were told to have ended. */
  readonly hurried: number;
  /** A second look at ids that were not found where they ought to be. */
  readonly everywhere: boolean;
}

/**
 * What to ask the database for, and when, while ids are awaited; no I/O, no timers.
 *
 * - *Rounds*: every awaited id is asked for, in slices. The interval between rounds rises from 50 ms to a second while nothing
 *   ends, and begins anew when something did, or somebody begins to wait.
 * - *Hurried* ids go first, at once and without the rest: those that are new, or of which it was heard that they ended. Ends
 *   that were told do not make the rounds quicker: a node that runs a thousand awaited jobs a second asks for those.
 * - *Doubtful* ids were not found. A question of its own looks for them everywhere.
 *
 * Whatever happens, statements begin at least 50 ms apart, and the database gets as long a rest as it was busy.
 */
export class Questions {
  readonly #awaited = new Set<string>();
  readonly #hurried = new Set<string>();
  readonly #doubtful = new Set<string>();
  /** What is left of a round. */
  #round: string[] = [];
  #roundDueMs = 0;
  #intervalMs = FIRST_INTERVAL_MS;
  #restUntilMs = Number.NEGATIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #lastEverywhere = false;

  has(id: string): boolean {
    return this.#awaited.has(id);
  }

  add(id: string, nowMs: number): void {
    this.#awaited.add(id);
    this.#hurried.add(id);
    this.#quicken(nowMs);
  }

  remove(id: string): void {
    this.#awaited.delete(id);
    this.#hurried.delete(id);
    this.#doubtful.delete(id);
  }

  /** Ask for it at once. */
  hurry(id: string): void {
    if (this.#awaited.has(id)) this.#hurried.add(id);
  }

  /** Ask for it everywhere. */
  doubt(id: string): void {
    if (this.#awaited.has(id)) this.#doubtful.add(id);
  }

  /** Milliseconds until the next question; `undefined` when nothing is awaited. */
  dueInMs(nowMs: number): number | undefined {
    if (this.#awaited.size === 0) return undefined;
    const urgent = this.#hurried.size > 0 || this.#doubtful.size > 0 || this.#round.length > 0;
    return Math.max(0, this.#restUntilMs - nowMs, urgent ? 0 : this.#roundDueMs - nowMs);
  }

  /** The question that is due now. */
  next(nowMs: number): Question {
    this.#askedMs = nowMs;
    this.#restUntilMs = nowMs + LEAST_GAP_MS;
    // In turns: many that are not found must not keep the others waiting, nor the other way round.
    const everywhere = this.#doubtful.size > 0 && (!this.#lastEverywhere || this.#hurried.size === 0);
    this.#lastEverywhere = everywhere;
    if (everywhere) return { ids: take(this.#doubtful, MOST_IDS), hurried: 0, everywhere };
    const hurried = take(this.#hurried, MOST_IDS);
    return { ids: this.#filled(hurried, nowMs), hurried: hurried.length, everywhere };
  }

  /** @param ended - those of its ids whose jobs had ended. */
  answered({ ids, hurried }: Question, ended: readonly string[], nowMs: number): void {
    const told = new Set(ids.slice(0, hurried));
    if (ended.some((id) => !told.has(id))) this.#quicken(nowMs);
    this.#restUntilMs = Math.max(this.#askedMs + LEAST_GAP_MS, nowMs + (nowMs - this.#askedMs));
  }

  /** The question had no answer: ask it again, not before `delayMs`. */
  failed({ ids, everywhere }: Question, nowMs: number, delayMs: number): void {
    for (const id of ids) {
      if (everywhere) this.doubt(id);
      else this.hurry(id);
    }
    this.#restUntilMs = Math.max(this.#askedMs + LEAST_GAP_MS, nowMs + delayMs);
  }

  #quicken(nowMs: number): void {
    this.#intervalMs = FIRST_INTERVAL_MS;
    this.#roundDueMs = Math.min(this.#roundDueMs, nowMs + FIRST_INTERVAL_MS);
  }

  /** With as much of a round as there is room for, if one is due. */
  #filled(hurried: readonly string[], nowMs: number): string[] {
    const ids = [...hurried];
    if (this.#round.length === 0 && nowMs >= this.#roundDueMs) this.#beginRound(nowMs);
    const known = new Set(hurried);
    while (ids.length < MOST_IDS) {
      const id = this.#round.pop();
      if (id === undefined) break;
      if (this.#awaited.has(id) && !known.has(id)) ids.push(id);
    }
    return ids;
  }

  #beginRound(nowMs: number): void {
    this.#round = [...this.#awaited];
    this.#roundDueMs = nowMs + this.#intervalMs;
    this.#intervalMs = Math.min(LONGEST_INTERVAL_MS, this.#intervalMs * 2);
  }
}

function take(ids: Set<string>, most: number): string[] {
  const taken: string[] = [];
  for (const id of ids) {
    if (taken.length === most) break;
    taken.push(id);
    ids.delete(id);
  }
  return taken;
}
