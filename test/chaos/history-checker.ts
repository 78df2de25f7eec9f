import { type TestDatabase } from '../support/database.js';

/** The table, outside the product, that the workers write each execution's begin and end to. */
export async function createSideTables(database: TestDatabase): Promise<void> {
  await database.query(`
    create table side (job uuid, seq bigint, pid int, began timestamptz, ended timestamptz);
    create table side_go (job uuid, pid int)`);
}

export interface Verdict {
  /** Each enqueued job, and how often it stands somewhere with a status. */
  readonly misplaced: { id: string; places: number }[];
  /** Claims that two processes executed: a fence would have nothing to tell them apart by. */
  readonly sharedClaims: { job: string; seq: string }[];
  /** Succeeded jobs whose recorded claim never finished its body. */
  readonly unfinishedSuccesses: string[];
  /** Executions that began outside, but have neither a closed row nor the final record. */
  readonly unrecorded: { job: string; seq: string }[];
  /** Closed executions that stand twice. */
  readonly doubled: { job_id: string; claim_seq: string }[];
}

/** Judges a run by what really happened, not by what the product says of itself. */
export async function judge(database: TestDatabase, ids: readonly string[]): Promise<Verdict> {
  return {
    misplaced: await database.query(
      `select w.id, count(j.id)::int as places from unnest($1::uuid[]) w (id) left join ratchet.jobs j on j.id = w.id
        group by w.id having count(j.id) <> 1`,
      [ids],
    ),
    sharedClaims: await database.query('select job, seq from side group by job, seq having count(*) > 1'),
    unfinishedSuccesses: (
      await database.query<{ id: string }>(
        `select j.id from ratchet.jobs j where j.status = 'succeeded'
            and not exists (select from side s where s.job = j.id and s.seq = j.claim_seq and s.ended is not null)`,
      )
    ).map((row) => row.id),
    unrecorded: await database.query(
      `select s.job, s.seq from side s where not exists
         (select from ratchet.executions e where e.job_id = s.job and e.claim_seq = s.seq)`,
    ),
    doubled: await database.query(
      'select job_id, claim_seq from ratchet.executions group by job_id, claim_seq having count(*) > 1',
    ),
  };
}

export const FLAWLESS: Verdict = {
  misplaced: [],
  sharedClaims: [],
  unfinishedSuccesses: [],
  unrecorded: [],
  doubled: [],
};
