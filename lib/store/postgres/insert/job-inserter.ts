import { showValue } from '../../../errors/show-value.js';
import { type Inserted, type NewJob, type StoreTransaction } from '../../job-store.js';
import { StoreError } from '../../store-fault.js';
import { type Row } from '../../sql-client.js';
import { type PostgresSession } from '../postgres-session.js';
import {
  insertJobs,
  type InsertKind,
  insertRows,
  isLarge,
  parentParameters,
} from '../statements/insert-jobs.js';
import { selectNodesThatDisable } from '../statements/lanes.js';
import { refusableRows, selectRefused } from '../statements/refused-jobs.js';
import { selectHolders, selectKeyOwners, selectParentsStand, setKeyLockTimeout } from '../statements/keys.js';
import { KeyedGroup } from './keyed-group.js';

/** A holder that ends between a refusal and the look at it leaves the key free: so often it is tried again. */
export const KEY_TRIES = 3;

/** One statement carries at most so many jobs and so many bytes of payload. */
const CHUNK_JOBS = 2_000;
const CHUNK_BYTES = 8_000_000;

/**
 * Brings new jobs into the live table. Un-keyed ones in one statement; a job with one key in one statement of its own; a
 * group with keys, and a job with both, in one transaction. A refusal is told by rows that did not come back, never by an
 * error, so it cannot abort the caller's transaction.
 */
export class JobInserter {
  constructor(
    private readonly session: PostgresSession,
    private readonly inlinePayloadBytes: number,
  ) {}

  async insert(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<readonly Inserted[]> {
    const [first] = jobs;
    if (!first) return [];
    if (!jobs.some(isKeyed)) return this.#plain(jobs, transaction);
    if (jobs.length > 1 || (first.businessKey !== undefined && first.idempotencyKey)) {
      return this.#grouped(jobs, transaction);
    }
    return [
      await (first.idempotencyKey
        ? this.#idempotent(first, transaction)
        : this.#business(first, transaction)),
    ];
  }

  /**
   * Sends one insert; the rows that came back are the jobs that entered, or, unless that was `checked` before, those that are refused
   * because their priority is switched off.
   */
  send(
    kind: InsertKind,
    jobs: readonly NewJob[],
    transaction: StoreTransaction | undefined,
    fenced: boolean,
    checked = false,
  ): Promise<Row[]> {
    const variant = {
      kind,
      fenced,
      large: jobs.some((job) => isLarge(job, this.inlinePayloadBytes)),
      guarded: !transaction && kind !== 'plain',
      checked,
    };
    const statement = {
      plain: insertJobs({ ...variant, marked: false }),
      marked: insertJobs({ ...variant, marked: true }),
    };
    const parameters = [this.session.offsetMs, insertRows(jobs, this.inlinePayloadBytes)];
    return this.session.write(
      statement,
      fenced ? [...parameters, ...parentParameters(jobs)] : parameters,
      transaction,
    );
  }

  /**
   * As {@link send}, for any number of jobs without keys to mind, for whom all was checked before; several statements need a
   * transaction around them.
   */
  async sendPlain(jobs: readonly NewJob[], transaction: StoreTransaction | undefined): Promise<void> {
    for (const chunk of chunks(jobs)) await this.send('plain', chunk, transaction, false, true);
  }

  /** The answers when one of the jobs is in a priority that is switched off; undefined when none is. For calls of several statements. */
  async refusal(
    jobs: readonly NewJob[],
    transaction?: StoreTransaction,
  ): Promise<readonly Inserted[] | undefined> {
    const parameters = [this.session.offsetMs, refusableRows(jobs)];
    return this.#refusalOf(jobs, await this.session.app(selectRefused, parameters, transaction), transaction);
  }

  async parentsStand(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<boolean> {
    const parents = parentParameters(jobs);
    if (parents[0].length === 0) return true;
    const [row] = await this.session.app(selectParentsStand, parents, transaction);
    return row?.['stand'] === 'true';
  }

  async #plain(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<readonly Inserted[]> {
    const fenced = jobs.some((job) => job.parent);
    const single = chunks(jobs).length === 1;
    if (single) {
      const rows = await this.send('plain', jobs, transaction, fenced);
      const refusal = await this.#refusalOf(jobs, rows.filter(isRefused), transaction);
      if (refusal) return refusal;
      const entered = rows.length === jobs.length;
      return jobs.map(({ id }) => (entered ? { outcome: 'created', id } : { outcome: 'fenced' }));
    }
    // Several statements: the fence and the priorities are looked at once, before the first.
    return this.#within(transaction, async (inside) => {
      if (!(await this.parentsStand(jobs, inside))) return jobs.map(() => ({ outcome: 'fenced' }) as const);
      const refusal = await this.refusal(jobs, inside);
      if (refusal) return refusal;
      await this.sendPlain(jobs, inside);
      return jobs.map(({ id }) => ({ outcome: 'created', id }) as const);
    });
  }

  async #idempotent(job: NewJob, transaction?: StoreTransaction): Promise<Inserted> {
    const key = job.idempotencyKey?.key ?? '';
    for (let attempt = 0; attempt < KEY_TRIES; attempt += 1) {
      const rows = await this.send('idempotent', [job], transaction, job.parent !== undefined);
      const refusal = await this.#refusalOf([job], rows.filter(isRefused), transaction);
      if (refusal?.[0]) return refusal[0];
      if (rows.length > 0) return { outcome: 'created', id: job.id };
      if (!(await this.parentsStand([job], transaction))) return { outcome: 'fenced' };
      const [owner] = await this.session.app(selectKeyOwners, [[key]], transaction);
      if (owner) return { outcome: 'existing', id: owner['id'] as string };
    }
    throw contended('idempotency', key);
  }

  async #business(job: NewJob, transaction?: StoreTransaction): Promise<Inserted> {
    const kind = job.onConflict === 'replace' ? 'replace' : 'keep';
    for (let attempt = 0; attempt < KEY_TRIES; attempt += 1) {
      const [row] = await this.send(kind, [job], transaction, job.parent !== undefined);
      const refusal = row && isRefused(row) ? await this.#refusalOf([job], [row], transaction) : undefined;
      if (refusal?.[0]) return refusal[0];
      if (row) return created(job.id, row['replaced'] as string | null | undefined);
      if (!(await this.parentsStand([job], transaction))) return { outcome: 'fenced' };
      const [holder] = await this.session.app(selectHolders, [[job.businessKey]], transaction);
      const running = holder?.['running'] === 'true';
      const id = holder?.['id'] as string | undefined;
      if (id !== undefined && job.onConflict === 'return') return { outcome: 'existing', id };
      // A holder that could be replaced came in since: replace that one.
      if (id !== undefined && (kind === 'keep' || running)) return { outcome: 'held', holder: id, running };
    }
    if (isAgreeable(job)) throw contended('business', job.businessKey);
    return { outcome: 'held', running: false };
  }

  #grouped(jobs: readonly NewJob[], transaction?: StoreTransaction): Promise<readonly Inserted[]> {
    return this.#within(transaction, async (inside) => {
      if (!transaction) await this.session.app(setKeyLockTimeout, [], inside);
      return new KeyedGroup(this, this.session, inside, jobs).insert();
    });
  }

  async #refusalOf(
    jobs: readonly NewJob[],
    rows: readonly Row[],
    transaction: StoreTransaction | undefined,
  ): Promise<readonly Inserted[] | undefined> {
    if (rows.length === 0) return undefined;
    const refused = new Set(rows.map(({ id }) => id as string));
    const nodes = new Map<string, readonly string[]>();
    const answers: Inserted[] = [];
    for (const { id, lane, priority } of jobs) {
      if (!refused.has(id)) {
        answers.push({ outcome: 'left_out' });
        continue;
      }
      const stream = `${priority}${lane}`;
      const known = nodes.get(stream) ?? (await this.#nodesThatDisable(lane, priority, transaction));
      nodes.set(stream, known);
      answers.push({ outcome: 'disabled', nodes: known });
    }
    return answers;
  }

  async #nodesThatDisable(
    lane: string,
    priority: number,
    transaction: StoreTransaction | undefined,
  ): Promise<readonly string[]> {
    const [row] = await this.session.app(selectNodesThatDisable, [lane, priority], transaction);
    return JSON.parse(row?.['nodes'] as string) as string[];
  }

  #within<T>(
    transaction: StoreTransaction | undefined,
    work: (inside: StoreTransaction) => Promise<T>,
  ): Promise<T> {
    return transaction ? work(transaction) : this.session.transaction(work);
  }
}

/** Nobody who holds its business key is a reason to refuse it, unless that one runs. */
export function isAgreeable({ onConflict }: NewJob): boolean {
  return onConflict === 'return' || onConflict === 'replace';
}

/** Whoever was found in the way was gone at the next look, each time: nothing is wrong with the call. */
export function contended(kind: 'business' | 'idempotency', key: string | undefined): StoreError {
  return new StoreError(
    'rolled_back',
    `STORE_FAULT: the ${kind} key ${showValue(key, 200)} keeps changing hands`,
    undefined,
  );
}

export function created(id: string, replaced: string | null | undefined): Inserted {
  return replaced ? { outcome: 'created', id, replaced } : { outcome: 'created', id };
}

function isRefused(row: Row): boolean {
  return row['refused'] === 'true';
}

function isKeyed(job: NewJob): boolean {
  return job.businessKey !== undefined || job.idempotencyKey !== undefined;
}

function chunks(jobs: readonly NewJob[]): NewJob[][] {
  const all: NewJob[][] = [];
  let current: NewJob[] = [];
  let bytes = 0;
  for (const job of jobs) {
    if (current.length >= CHUNK_JOBS || (bytes > 0 && bytes + job.payload.length > CHUNK_BYTES)) {
      all.push(current);
      current = [];
      bytes = 0;
    }
    current.push(job);
    bytes += job.payload.length;
  }
  return [...all, current];
}
