import { type ProgressReport } from '../store/job-store.js';
import { claimKey, MOST_SENT_BYTES, type Outbox, type Parcel } from './outbox.js';
import { type RunningClaims } from './running-claims.js';

/** The last progress of each running execution, until an exchange takes it along. Losing one costs nothing but a display. */
export class ProgressQueue {
  readonly #reports = new Map<string, ProgressReport>();

  get size(): number {
    return this.#reports.size;
  }

  put(report: ProgressReport): void {
    this.#reports.set(claimKey(report.id, report.claimSeq), report);
  }

  /** What may travel with that parcel; what is too much for one stays for the next. */
  take(parcel: Parcel, claims: RunningClaims, outbox: Outbox): readonly ProgressReport[] {
    if (this.#reports.size === 0) return [];
    const settled = new Set(parcel.entries.map(({ settlement }) => settlement.id));
    const taken: ProgressReport[] = [];
    let bytes = 0;
    for (const [key, report] of this.#reports) {
      // An outcome carries its own progress; a report of an ended claim is of no use.
      if (!claims.has(key) || outbox.get(key)) this.#reports.delete(key);
      else if (!parcel.suspect && !settled.has(report.id)) {
        bytes += report.value.length;
        if (taken.length > 0 && bytes > MOST_SENT_BYTES) break;
        taken.push(report);
        this.#reports.delete(key);
      }
    }
    return taken;
  }

  /** The exchange failed: again next time, unless a newer one came. */
  putBack(reports: readonly ProgressReport[]): void {
    for (const report of reports) {
      const key = claimKey(report.id, report.claimSeq);
      if (!this.#reports.has(key)) this.#reports.set(key, report);
    }
  }
}
