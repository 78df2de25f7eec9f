import { isUuid } from '../../../jobs/job-id.js';
import { type PriorityRank } from '../../../jobs/priority.js';
import {
  type ControlAction,
  type ControlledJob,
  type ControlPlace,
  type ControlStep,
  type JobQuery,
} from '../../job-store.js';
import { type Row } from '../../sql-client.js';
import { faultKindOf, isLockTimeout } from '../../store-fault.js';
import { type MakeStatement, type PostgresSession } from '../postgres-session.js';
import {
  CONTROL_CHUNK,
  type ControlSource,
  type ControlStatementRequest,
  controlStatement,
  isControllable,
} from './control-statement.js';

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
/** What a step waits in all for rows and keys that others hold. */
const PATIENCE_MS = 2_000;
/** What a chunk waits for a business key that an open transaction holds: meanwhile it holds its own rows and keys. */
const KEY_PATIENCE_MS = 100;

/**
 * `$1` lock_timeout. On a table without statistics the planner would sort all of it for each window; the application's
 * connections do not pin plans.
 */
export const setForStep: MakeStatement = () => ({
  text: `select set_config('lock_timeout', $1::text, true), set_config('enable_seqscan', 'off', true),
                set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true)`,
});

/** What is left of a chunk after its first statement: rows that somebody holds, or all of them, one by one. */
interface Begun {
  readonly acted: Acted;
  readonly isStuck: boolean;
}

interface Acted {
  readonly matched: readonly string[];
  readonly changed: readonly ControlledJob[];
  readonly skipped: readonly string[];
  readonly last: string | undefined;
  readonly asOf: string;
}

/**
 * One step of a bulk action. The chunk is one statement and never waits for a row: it skips those that somebody holds. Then the
 * first of the skipped ones is waited for, alone, so that nothing is held meanwhile that another could wait for; when its
 * holder lets go, the rest is tried again, and so on for two seconds. What is still held then is left: matched, not changed.
 *
 * A chunk can wait for a business key only (redrive). When it waits in vain it changes nothing and is done job by job.
 */
export class BulkStep {
  readonly #request: Omit<ControlStatementRequest, 'source' | 'locks' | 'asOf'>;
  readonly #changed: ControlledJob[] = [];

  constructor(
    private readonly session: PostgresSession,
    action: ControlAction,
    query: JobQuery,
    private readonly place: ControlPlace | undefined,
  ) {
    this.#request = { action, query, offsetMs: session.offsetMs };
  }

  async run(): Promise<ControlStep> {
    if (!isControllable(this.#request.action, this.#request.query)) {
      return { matched: 0, changed: [], next: undefined };
    }
    const { source, next } = this.#source();
    const begun = await this.#begin(source);
    const { matched, last, asOf } = begun.acted;
    const failure = await this.#finish(begun);
    const after = next ?? last;
    return {
      matched: matched.length,
      changed: this.#changed,
      next: after === undefined ? undefined : { after, asOf },
      ...(failure ? { failure } : {}),
    };
  }

  /** Named jobs are looked up by their ids, a chunk of them at a time. */
  #source(): { readonly source: ControlSource; readonly next?: string } {
    const after = this.place?.after ?? FIRST_ID;
    const { ids } = this.#request.query;
    if (!ids) return { source: { after } };
    const left = [...new Set(ids.filter(isUuid).map((id) => id.toLowerCase()))]
      .filter((id) => id > after)
      .sort();
    const chunk = left.slice(0, CONTROL_CHUNK);
    const next = left.length > CONTROL_CHUNK ? chunk.at(-1) : undefined;
    return { source: { ids: chunk }, ...(next === undefined ? {} : { next }) };
  }

  async #begin(source: ControlSource): Promise<Begun> {
    const asOf = this.place?.asOf;
    try {
      return { acted: await this.#act(source, 'skip', this.#keyPatience(), asOf), isStuck: false };
    } catch (error) {
      if (!isStuck(error)) throw error;
    }
    return { acted: await this.#act(source, 'look', PATIENCE_MS, asOf), isStuck: true };
  }

  /** From here on an error must not hide what is committed already, and has to be told of. */
  async #finish({ acted, isStuck }: Begun): Promise<ControlStep['failure']> {
    try {
      await this.#waitFor(
        isStuck ? await this.#oneByOne(acted.matched, acted.asOf) : acted.skipped,
        acted.asOf,
      );
      return undefined;
    } catch (cause) {
      return { cause };
    }
  }

  /** Returns those that were held. */
  async #oneByOne(ids: readonly string[], asOf: string): Promise<readonly string[]> {
    const until = performance.now() + PATIENCE_MS;
    const skipped: string[] = [];
    for (const [index, id] of ids.entries()) {
      if (performance.now() > until) return [...skipped, ...ids.slice(index)];
      const acted = await this.#tried({ ids: [id] }, 'skip', KEY_PATIENCE_MS, asOf);
      skipped.push(...(acted ? acted.skipped : [id]));
    }
    return skipped;
  }

  async #waitFor(skipped: readonly string[], asOf: string): Promise<void> {
    const until = performance.now() + PATIENCE_MS;
    let left = skipped;
    while (left.length > 0) {
      const patience = Math.floor(until - performance.now());
      if (patience < 1) return;
      await this.#tried({ ids: left.slice(0, 1) }, 'wait', patience, asOf);
      const rest = left.slice(1);
      if (rest.length === 0) return;
      const acted = await this.#tried({ ids: rest }, 'skip', this.#keyPatience(), asOf);
      left = acted ? acted.skipped : rest;
    }
  }

  /** `undefined`: somebody held a row or a key for too long, and nothing was changed. */
  async #tried(
    source: ControlSource,
    locks: 'skip' | 'wait',
    patienceMs: number,
    asOf: string,
  ): Promise<Acted | undefined> {
    try {
      return await this.#act(source, locks, patienceMs, asOf);
    } catch (error) {
      if (isStuck(error)) return undefined;
      throw error;
    }
  }

  #keyPatience(): number {
    return this.#request.action.kind === 'redrive' ? KEY_PATIENCE_MS : PATIENCE_MS;
  }

  async #act(
    source: ControlSource,
    locks: ControlStatementRequest['locks'],
    patienceMs: number,
    asOf: string | undefined,
  ): Promise<Acted> {
    const { text, parameters } = controlStatement(this.session.schema, {
      ...this.#request,
      source,
      locks,
      asOf,
    });
    const rows = await this.session.transaction(async (transaction) => {
      await this.session.app(setForStep, [`${String(patienceMs)}ms`], transaction);
      return this.session.app({ text }, parameters, transaction);
    });
    const acted = decodeActed(rows);
    this.#changed.push(...acted.changed);
    return acted;
  }
}

/** A lock was not to be had in time, or two waited for each other: nothing was changed. */
function isStuck(error: unknown): boolean {
  return isLockTimeout(error) || faultKindOf(error) === 'rolled_back';
}

function decodeActed(rows: readonly Row[]): Acted {
  const jobs = rows.filter((row) => row['tag'] !== 'end');
  const end = rows.find((row) => row['tag'] === 'end');
  const idsOf = (some: readonly Row[]): string[] => some.map((row) => row['id'] as string);
  return {
    matched: idsOf(jobs),
    changed: jobs.filter((row) => row['tag'] === 'changed').map(decodeControlled),
    skipped: idsOf(jobs.filter((row) => row['tag'] === 'skipped')).sort(),
    last: (end?.['id'] as string | null) ?? undefined,
    asOf: end?.['name'] as string,
  };
}

function decodeControlled(row: Row): ControlledJob {
  const claimSeq = row['claim_seq'] as string | null;
  return {
    id: row['id'] as string,
    name: row['name'] as string,
    lane: row['lane'] as string,
    priority: Number(row['priority']) as PriorityRank,
    ...(claimSeq === null ? {} : { claimSeq }),
  };
}
