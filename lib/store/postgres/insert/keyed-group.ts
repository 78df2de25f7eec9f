import { type Inserted, type NewJob, type StoreTransaction } from '../../job-store.js';
import { type StoreError } from '../../store-fault.js';
import { type PostgresSession } from '../postgres-session.js';
import { insertRows } from '../statements/insert-jobs.js';
import {
  claimIdempotencyKeys,
  lockHolders,
  pointKeys,
  selectHolders,
  selectKeyOwners,
  undoInsert,
} from '../statements/keys.js';
import { contended, created, isAgreeable, KEY_TRIES, type JobInserter } from './job-inserter.js';

interface Holder {
  readonly id: string;
  readonly running: boolean;
}

/**
 * One call's jobs with keys, inside a transaction: all or nothing. The order makes that possible without a savepoint:
 * what can be refused comes first and is undone by id; superseding a holder cannot be undone, so it comes when nothing
 * can be refused any more, on holders that were locked before.
 *
 * Never used twice.
 */
export class KeyedGroup {
  readonly #results = new Map<string, Inserted>();
  readonly #claimedKeys: NewJob[] = [];
  readonly #entered: string[] = [];
  readonly #replaceable: NewJob[] = [];
  /** Later jobs of one idempotency key, each with the first of this call. */
  readonly #repeats: (readonly [job: NewJob, first: NewJob])[] = [];

  /** Tried too often: the call is refused, whatever else became of it. */
  #contended: StoreError | undefined;

  constructor(
    private readonly inserter: JobInserter,
    private readonly session: PostgresSession,
    private readonly transaction: StoreTransaction,
    private readonly jobs: readonly NewJob[],
  ) {}

  async insert(): Promise<readonly Inserted[]> {
    if (!(await this.inserter.parentsStand(this.jobs, this.transaction))) {
      return this.jobs.map(() => ({ outcome: 'fenced' }));
    }
    const refusal = await this.inserter.refusal(this.jobs, this.transaction);
    if (refusal) return refusal;
    await this.#claimKeys();
    await this.#insertByBusinessKey(this.#dropDoubles());
    if (this.#refused()) await this.#undo();
    else await this.#finish();
    if (this.#contended) throw this.#contended;
    return this.jobs.map(({ id }) => this.#results.get(id) ?? { outcome: 'created', id });
  }

  /** First in call order wins an idempotency key; repeats get its job's id. */
  async #claimKeys(): Promise<void> {
    const first = new Map<string, NewJob>();
    for (const job of this.jobs) {
      if (!job.idempotencyKey) continue;
      const winner = first.get(job.idempotencyKey.key);
      if (winner) this.#repeats.push([job, winner]);
      else first.set(job.idempotencyKey.key, job);
    }
    let open = [...first.values()];
    for (let attempt = 0; attempt < KEY_TRIES && open.length > 0; attempt += 1) {
      open = await this.#tryKeys(open);
    }
    for (const job of open) this.#contended ??= contended('idempotency', job.idempotencyKey?.key);
    this.#answerRepeats();
  }

  /** Asked again at the end: the first may turn out to exist under its business key. */
  #answerRepeats(): void {
    for (const [job, { id }] of this.#repeats) {
      const first = this.#results.get(id);
      this.#results.set(job.id, { outcome: 'existing', id: first?.outcome === 'existing' ? first.id : id });
    }
  }

  /** Returns the jobs whose key was taken when they tried and gone when they looked. */
  async #tryKeys(jobs: readonly NewJob[]): Promise<NewJob[]> {
    const rows = await this.session.write(
      claimIdempotencyKeys,
      [this.session.offsetMs, insertRows(jobs, 0)],
      this.transaction,
    );
    const ours = new Set(rows.map((row) => row['id']));
    this.#claimedKeys.push(...jobs.filter(({ id }) => ours.has(id)));
    const others = jobs.filter(({ id }) => !ours.has(id));
    if (others.length === 0) return [];
    const keys = others.map((job) => job.idempotencyKey?.key);
    const owners = new Map(
      (await this.session.app(selectKeyOwners, [keys], this.transaction)).map((row) => [
        row['key'],
        row['id'] as string,
      ]),
    );
    return others.filter((job) => {
      const owner = owners.get(job.idempotencyKey?.key);
      if (owner !== undefined) this.#results.set(job.id, { outcome: 'existing', id: owner });
      return owner === undefined;
    });
  }

  /** The jobs with a business key that go on: the first of each key. The rest get its id, or are held by it. */
  #dropDoubles(): NewJob[] {
    const first = new Map<string, NewJob>();
    for (const job of this.jobs) {
      if (job.businessKey === undefined || this.#results.has(job.id)) continue;
      const winner = first.get(job.businessKey);
      if (!winner) first.set(job.businessKey, job);
      else if (job.onConflict === 'return') this.#results.set(job.id, { outcome: 'existing', id: winner.id });
      else this.#results.set(job.id, { outcome: 'held', holder: winner.id, running: false });
    }
    return [...first.values()];
  }

  async #insertByBusinessKey(jobs: readonly NewJob[]): Promise<void> {
    let open = [...jobs];
    for (let attempt = 0; attempt < KEY_TRIES && open.length > 0 && !this.#refused(); attempt += 1) {
      open = await this.#tryBusinessKeys(await this.#setReplaceableAside(open));
    }
    if (this.#refused()) return;
    for (const job of open) {
      if (isAgreeable(job)) this.#contended ??= contended('business', job.businessKey);
      else this.#results.set(job.id, { outcome: 'held', running: false });
    }
  }

  /** Locks the holders that are to be replaced; returns the jobs that are still to be inserted now. */
  async #setReplaceableAside(jobs: readonly NewJob[]): Promise<NewJob[]> {
    const replacing = jobs.filter((job) => job.onConflict === 'replace');
    if (replacing.length === 0) return [...jobs];
    const holders = await this.#holders(replacing, true);
    return jobs.filter((job) => {
      const holder = job.onConflict === 'replace' ? holders.get(job.businessKey) : undefined;
      if (!holder) return true;
      if (holder.running) this.#results.set(job.id, { outcome: 'held', holder: holder.id, running: true });
      else this.#replaceable.push(job);
      return false;
    });
  }

  /** Returns the jobs to try again. */
  async #tryBusinessKeys(jobs: readonly NewJob[]): Promise<NewJob[]> {
    if (jobs.length === 0) return [];
    const rows = await this.inserter.send('keep', jobs, this.transaction, false, true);
    const ours = new Set(rows.map((row) => row['id'] as string));
    this.#entered.push(...ours);
    const others = jobs.filter(({ id }) => !ours.has(id));
    if (others.length === 0) return [];
    const holders = await this.#holders(others, false);
    return others.filter((job) => {
      const holder = holders.get(job.businessKey);
      if (!holder || job.onConflict === 'replace') return true;
      this.#results.set(
        job.id,
        job.onConflict === 'return'
          ? { outcome: 'existing', id: holder.id }
          : { outcome: 'held', holder: holder.id, running: holder.running },
      );
      return false;
    });
  }

  async #holders(jobs: readonly NewJob[], lock: boolean): Promise<Map<string | undefined, Holder>> {
    const keys = jobs.map((job) => job.businessKey);
    const rows = await this.session.app(lock ? lockHolders : selectHolders, [keys], this.transaction);
    return new Map(
      rows.map((row) => [
        row['business_key'] as string,
        { id: row['id'] as string, running: row['running'] === 'true' },
      ]),
    );
  }

  /** Nothing can be refused any more: supersede, and bring in what has no business key. */
  async #finish(): Promise<void> {
    if (this.#replaceable.length > 0) {
      const rows = await this.inserter.send('replace', this.#replaceable, this.transaction, false, true);
      for (const row of rows) {
        const id = row['id'] as string;
        this.#results.set(id, created(id, row['replaced'] as string | null));
      }
    }
    const rest = this.jobs.filter((job) => job.businessKey === undefined && !this.#results.has(job.id));
    if (rest.length > 0) await this.inserter.sendPlain(rest, this.transaction);
    await this.#pointKeys();
    this.#answerRepeats();
  }

  /** A key whose job turned out to exist under its business key: a repeat must get that one's id. */
  async #pointKeys(): Promise<void> {
    const moved = this.#claimedKeys.flatMap((job) => {
      const result = this.#results.get(job.id);
      return result?.outcome === 'existing' ? [{ key: job.idempotencyKey?.key, id: result.id }] : [];
    });
    if (moved.length === 0) return;
    await this.session.write(
      pointKeys,
      [moved.map(({ key }) => key), moved.map(({ id }) => id)],
      this.transaction,
    );
  }

  async #undo(): Promise<void> {
    const owners = this.#claimedKeys.map(({ id }) => id);
    const keys = this.#claimedKeys.map((job) => job.idempotencyKey?.key);
    if (this.#entered.length + keys.length === 0) return;
    await this.session.app(undoInsert, [this.#entered, keys, owners], this.transaction);
  }

  #refused(): boolean {
    return (
      this.#contended !== undefined || [...this.#results.values()].some(({ outcome }) => outcome === 'held')
    );
  }
}
