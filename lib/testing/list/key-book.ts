import { type Inserted, type NewJob } from '../../store/job-store.js';

/** The live job that holds a business key. */
export interface KeyHolder {
  readonly id: string;
  readonly running: boolean;
}

/** What an insert asks of the jobs that are there. */
export interface KeyBook {
  holderOf(businessKey: string): KeyHolder | undefined;
  /** The first job of an idempotency key that has not expired. */
  ownerOf(key: string): string | undefined;
}

/**
 * What becomes of the jobs of one call, by their keys: all of them enter, or, when one is `held`, none. Earlier jobs of the
 * call count as there.
 */
export function judge(jobs: readonly NewJob[], book: KeyBook): readonly Inserted[] {
  const holders = new Map<string, string>();
  const owners = new Map<string, string>();
  return jobs.map((job) => {
    const key = job.idempotencyKey?.key;
    const owner = key === undefined ? undefined : (owners.get(key) ?? book.ownerOf(key));
    if (owner !== undefined) return { outcome: 'existing', id: owner };
    const inserted = byBusinessKey(job, holders, book);
    if (key !== undefined && 'id' in inserted) owners.set(key, inserted.id);
    return inserted;
  });
}

function byBusinessKey(job: NewJob, holders: Map<string, string>, book: KeyBook): Inserted {
  const { id, businessKey, onConflict } = job;
  if (businessKey === undefined) return { outcome: 'created', id };
  const ofThisCall = holders.get(businessKey);
  const holder = ofThisCall === undefined ? book.holderOf(businessKey) : { id: ofThisCall, running: false };
  if (!holder) {
    holders.set(businessKey, id);
    return { outcome: 'created', id };
  }
  if (onConflict === 'return') return { outcome: 'existing', id: holder.id };
  if (onConflict === 'replace' && !holder.running && ofThisCall === undefined) {
    holders.set(businessKey, id);
    return { outcome: 'created', id, replaced: holder.id };
  }
  return { outcome: 'held', holder: holder.id, running: holder.running };
}
