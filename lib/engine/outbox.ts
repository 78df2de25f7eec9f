import { RenewedMap } from '../collections/renewed-map.js';
import { type LateOutcome, type Settlement } from '../store/job-store.js';
import { type EndedWork } from './execution-events.js';

/** An exchange carries at most so much of results, errors and progress, unless a single one is larger. */
export const MOST_SENT_BYTES = 1_000_000;
/** After so many skips the next send waits for the row. */
export const SKIPS_BEFORE_WAITING = 5;

/** With the result, then without it, then without the reason. */
const REFUSALS_BEFORE_PARKING = 2;

/** A finished execution on its way to the database. */
export interface OutboxEntry {
  readonly key: string;
  settlement: Settlement;
  skips: number;
  /** How often the database refused it although it stood alone. */
  refusals: number;
  /** What the body said after its outcome was decided (a timeout): told once the outcome is recorded. */
  late: LateOutcome | undefined;
  /** Told what was recorded, once it is. */
  readonly onRecorded: ((settlement: Settlement) => void) | undefined;
  /** What ended, for those who listen. */
  readonly work: EndedWork | undefined;
}

/** What one exchange takes along. */
export interface Parcel {
  readonly entries: readonly OutboxEntry[];
  /** Part of a statement that failed for one of its rows: it goes alone, without a claim. */
  readonly suspect: boolean;
  /** Skipped too often: the statement waits for these rows, and claims nothing meanwhile. */
  readonly overdue: boolean;
}

export function claimKey(id: string, claimSeq: string): string {
  return `${id}/${claimSeq}`;
}

/**
 * Finished work that is not durable yet, in the order in which it finished. Nothing leaves it but by an answer of the
 * database: recorded, or lost to a newer claim. A parcel holds each job once, because answers are by job id.
 */
export class Outbox {
  readonly #entries = new RenewedMap<string, OutboxEntry>();
  /** Groups of a statement that failed for one row, halved until that row stands alone. */
  readonly #suspects: OutboxEntry[][] = [];
  readonly #skipped = new Set<string>();
  /** Refused even without its result: out of the way, tried again from time to time. */
  readonly #parked = new Map<string, OutboxEntry>();
  /** The last resort of a node that leaves: what is refused is released instead of parked. */
  #givesBack = false;

  /** Entries that want to be sent. */
  get size(): number {
    return this.#entries.size;
  }

  /** Of these, the ones that no exchange has skipped yet. */
  get fresh(): number {
    return this.#entries.size - this.#skipped.size;
  }

  get parked(): number {
    return this.#parked.size;
  }

  add(settlement: Settlement, work?: EndedWork, onRecorded?: OutboxEntry['onRecorded']): void {
    const key = claimKey(settlement.id, settlement.claimSeq);
    this.#entries.set(key, { key, settlement, skips: 0, refusals: 0, late: undefined, onRecorded, work });
  }

  get(key: string): OutboxEntry | undefined {
    return this.#entries.get(key) ?? this.#parked.get(key);
  }

  all(): readonly OutboxEntry[] {
    return [...this.#entries.values(), ...this.#parked.values()];
  }

  remove(key: string): void {
    this.#entries.delete(key);
    this.#skipped.delete(key);
    this.#parked.delete(key);
  }

  /** Somebody held the row: it travels again. */
  skip(entry: OutboxEntry): void {
    entry.skips += 1;
    this.#skipped.add(entry.key);
  }

  /** Waiting for the row did not help either: counts from the start. */
  forgetSkips(entries: readonly OutboxEntry[]): void {
    for (const entry of entries) entry.skips = 1;
  }

  /** The parked ones are tried again. */
  unpark(): void {
    for (const entry of this.#parked.values()) this.#suspects.push([entry]);
    for (const [key, entry] of this.#parked) this.#entries.set(key, entry);
    this.#parked.clear();
  }

  /** From now on, and for what is parked: a job whose outcome cannot be recorded is given back, to run again elsewhere. */
  giveBackRefused(): void {
    this.#givesBack = true;
    for (const entry of this.#parked.values()) entry.settlement = releaseOf(entry.settlement);
    this.unpark();
  }

  /** What goes next; with `waitFor`, only what was skipped so often. Entries stay inside until they are answered. */
  next(waitFor = Number.POSITIVE_INFINITY): Parcel {
    while (this.#suspects.length > 0) {
      const group = this.#suspects[0]?.filter((entry) => this.#entries.has(entry.key)) ?? [];
      if (group.length > 0) return { entries: group, suspect: true, overdue: false };
      this.#suspects.shift();
    }
    const overdue = [...this.#skipped]
      .flatMap((key) => this.#entries.get(key) ?? [])
      .filter((e) => e.skips >= waitFor);
    const entries: OutboxEntry[] = [];
    const ids = new Set<string>();
    let bytes = 0;
    for (const entry of overdue.length > 0 ? overdue : this.#entries.values()) {
      if (ids.has(entry.settlement.id)) continue;
      bytes += bytesOf(entry.settlement);
      if (entries.length > 0 && bytes > MOST_SENT_BYTES) break;
      ids.add(entry.settlement.id);
      entries.push(entry);
    }
    return { entries, suspect: false, overdue: overdue.length > 0 };
  }

  /** The statement failed for one of these rows: halves them, or takes what cannot be recorded off the one that is left. */
  split(parcel: Parcel, reason: string): void {
    if (parcel.suspect) this.#suspects.shift();
    const { entries } = parcel;
    const [only] = entries;
    if (entries.length === 1 && only) {
      only.refusals += 1;
      if (only.refusals <= REFUSALS_BEFORE_PARKING) only.settlement = unrecordable(only.settlement, reason);
      else if (this.#givesBack && only.settlement.outcome !== 'released')
        only.settlement = releaseOf(only.settlement);
      else {
        this.remove(only.key);
        this.#parked.set(only.key, only);
        return;
      }
      this.#suspects.unshift([only]);
      return;
    }
    const middle = Math.ceil(entries.length / 2);
    this.#suspects.unshift(entries.slice(0, middle), entries.slice(middle));
  }

  /** A suspect group went through (its skipped entries travel with the others again). */
  passed(parcel: Parcel): void {
    if (parcel.suspect) this.#suspects.shift();
  }
}

/** What is sent of an entry: with the time since it began, where the database does not know when that was. */
export function settlementOf({ settlement, work }: OutboxEntry, nowMs: number): Settlement {
  if (!work || work.job.begun || work.beganMs === undefined) return settlement;
  return { ...settlement, ranMs: nowMs - work.beganMs };
}

function bytesOf({ result, error, progress }: Settlement): number {
  return (result?.length ?? 0) + (error?.length ?? 0) + (progress?.length ?? 0);
}

/** The same end without what the database refused: the result and the progress, and in the end the reason too. */
function unrecordable({ id, claimSeq, error }: Settlement, reason: string): Settlement {
  const told = `the outcome could not be recorded: ${reason}`;
  return {
    id,
    claimSeq,
    outcome: 'failed',
    error: error === told ? 'the outcome could not be recorded' : told,
  };
}

function releaseOf({ id, claimSeq }: Settlement): Settlement {
  return { id, claimSeq, outcome: 'released', error: 'the outcome could not be recorded; job released' };
}
