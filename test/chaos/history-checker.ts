import { type TestDatabase } from '../support/database.js';

/** The tables, outside the product, that the workers write each execution's begin and end to, and hear the parent from. */
export async function createSideTables(database: TestDatabase): Promise<void> {
  await database.query(`
    create table side (job uuid, seq bigint, pid int, began timestamptz, ended timestamptz, primary key (job, seq, pid));
    create table side_go (job uuid, pid int);
    create table side_gone (node text, epoch bigint, pid int, replaced boolean, silent_ms float8, at timestamptz)`);
}

/**
 * Notes, by a trigger, which node lost its membership, and for how long it had been silent: whoever took it away, and also when that
 * process died before it could say so. After the migrations.
 */
export async function watchMembership(database: TestDatabase): Promise<void> {
  await database.query(`
    create function side_note_gone() returns trigger language plpgsql security definer set search_path = public as $$
    begin
      insert into side_gone values (old.id, old.epoch, old.pid, tg_op = 'UPDATE',
        extract(epoch from clock_timestamp() - old.heartbeat_at) * 1000, clock_timestamp());
      return null;
    end $$;
    create trigger side_deleted after delete on ratchet.node for each row execute function side_note_gone();
    create trigger side_replaced after update on ratchet.node for each row when (old.epoch <> new.epoch and old.pid <> new.pid)
      execute function side_note_gone()`);
}

/** What the people outside know of a run. */
export interface Known {
  /** Jobs whose enqueue was acknowledged, and whose transaction was committed. */
  readonly acknowledged: readonly string[];
  /** The numbers (`n` in the payload) of jobs that were enqueued in transactions that were rolled back. */
  readonly rolledBack?: readonly number[];
  /** Processes that ended without a chance to say goodbye. */
  readonly killed?: readonly number[];
  /** The grace of the nodes. A node that was declared dead sooner was not silent, but alive. */
  readonly graceMs?: number;
  /** `maxCrashRedeliveries` of the nodes. */
  readonly budget?: number;
  /** `concurrency` of the nodes: so many jobs of one can have begun without a word of it when it was killed. */
  readonly slots?: number;
}

/** One thing that must not be. */
export interface Finding {
  readonly rule: string;
  readonly detail: Record<string, unknown>;
}

/** The parameters `known` are `ids`, `rolled_back`, `killed`, `grace_ms`, `budget`, `slots`; every row that a rule selects is a finding. */
const RULES: Readonly<Record<string, string>> = {
  'an acknowledged job stands in exactly one place': `
    select w.id, count(j.id) as places from known, unnest(known.ids) w (id) left join ratchet.jobs j on j.id = w.id
     group by w.id having count(j.id) <> 1`,
  'every job ends': `
    select id, status from ratchet.jobs where status not in ('succeeded', 'failed', 'canceled')`,
  'nothing of a rolled-back transaction is there': `
    select j.id, j.payload from ratchet.jobs j, known where (j.payload->>'n')::int = any (known.rolled_back)`,
  'a claim is executed by one process': `
    select job, seq from side group by job, seq having count(*) > 1`,
  'a recorded success finished its body': `
    select j.id, j.claim_seq from ratchet.jobs j where j.status = 'succeeded' and not exists
      (select from side s where s.job = j.id and s.seq = j.claim_seq and s.ended is not null)`,
  'a recorded result is that of the recorded claim': `
    select j.id, j.claim_seq, j.result, s.pid from ratchet.jobs j join side s on s.job = j.id and s.seq = j.claim_seq
     where j.status = 'succeeded' and (j.result->>'seq' <> j.claim_seq::text or j.result->>'pid' <> s.pid::text)`,
  'every execution has a record': `
    select s.job, s.seq from side s where not exists
      (select from ratchet.executions e where e.job_id = s.job and e.claim_seq = s.seq)`,
  'no execution is recorded twice': `
    select job_id, claim_seq from ratchet.executions group by job_id, claim_seq having count(*) > 1`,
  'a claim is taken back from a node that was silent for the grace, or replaced': `
    select e.job_id, e.claim_seq, e.node, e.began_at, e.ended_at
      from known cross join ratchet.executions e left join side s on s.job = e.job_id and s.seq = e.claim_seq
     where e.outcome = 'crashed' and not exists (
       select from side_gone g where g.node = e.node and g.pid = coalesce(s.pid, g.pid) and g.at <= e.ended_at
          and g.at >= e.began_at - known.grace_ms * interval '1 millisecond'
          and (g.replaced or g.silent_ms >= known.grace_ms))`,
  'nothing is claimed into a bucket that is gone': `
    select e.job_id, e.claim_seq, e.outcome from ratchet.executions e
     where e.outcome = 'crashed' and e.node is null or e.outcome = 'running' and not exists
       (select from ratchet.job j join ratchet.bucket b on b.id = j.bucket where j.id = e.job_id)`,
  'the charges of a job are its crashed executions': `
    select j.id, j.crashes from ratchet.jobs j where j.crashes <>
      (select count(*) from ratchet.executions e where e.job_id = j.id and e.outcome = 'crashed')`,
  'what ran in a process that was killed is charged': `
    select s.job, s.seq, e.outcome, e.error from known cross join side s
      left join ratchet.executions e on e.job_id = s.job and e.claim_seq = s.seq
     where s.ended is null and s.pid = any (known.killed) and coalesce(e.outcome, 'none') not in ('crashed', 'released')
       and coalesce(e.error, '') not ilike '%timeout%'`,
  'what only waited in a buffer is not charged': `
    select e.node, count(*) as charged from known cross join ratchet.executions e
     where e.outcome = 'crashed' and known.slots is not null and not exists (select from side s where s.job = e.job_id and s.seq = e.claim_seq)
     group by e.node, known.slots
    having count(*) > known.slots * (select count(*) from side_gone g where g.node = e.node)`,
  'a bucket moves as its table says': `
    select rule as broken, bucket, before, after from side_bucket_violation`,
  'nobody is charged beyond the budget': `
    select j.id, j.status, j.crashes from ratchet.jobs j, known
     where j.crashes > known.budget + 1 or (j.crashes > known.budget and j.status <> 'failed')`,
  'nothing ends in the dead letter but for its crashes': `
    select id, name, failures, error from ratchet.dead_letter where outcome <> 'crashed'`,
  'the failures of a job are its failed executions': `
    select j.id, j.failures from ratchet.jobs j where j.failures <>
      (select count(*) from ratchet.executions e where e.job_id = j.id and e.outcome in ('retried', 'failed'))`,
  'a job that nobody took back runs once at a time': `
    select a.job, a.seq, b.seq as beside, e.outcome from side a join side b on b.job = a.job and b.seq > a.seq
      join ratchet.executions e on e.job_id = a.job and e.claim_seq = a.seq
     where b.began < coalesce(a.ended, 'infinity') and e.outcome not in ('crashed', 'released')
       and coalesce(e.error, '') not ilike '%timeout%'`,
};

/** Judges a run by what really happened, not by what the product says of itself. An empty list is a good verdict. */
export async function judge(database: TestDatabase, known: Known): Promise<Finding[]> {
  const parameters = [
    known.acknowledged,
    known.rolledBack ?? [],
    known.killed ?? [],
    known.graceMs ?? 30_000,
    known.budget ?? 3,
    known.slots ?? null,
  ];
  const findings: Finding[] = [];
  for (const [rule, select] of Object.entries(RULES)) {
    const rows = await database.query(
      `with known as (select $1::uuid[] as ids, $2::int[] as rolled_back, $3::int[] as killed, $4::float8 as grace_ms, $5::int as budget, $6::int as slots)
       ${select}`,
      parameters,
    );
    findings.push(...rows.map((detail) => ({ rule, detail })));
  }
  return findings;
}

/** How many findings of each rule, and the first of each, for people. */
export function tell(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'verdict: good';
  const rules = [...new Set(findings.map(({ rule }) => rule))].map((rule) => {
    const of = findings.filter((finding) => finding.rule === rule);
    return `  ${String(of.length)} against "${rule}", for example ${JSON.stringify(of[0]!.detail)}`;
  });
  return ['verdict: BAD', ...rules].join('\n');
}
