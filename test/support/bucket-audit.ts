import { BUCKET_ENDS, BUCKET_TRANSITIONS } from '../../lib/store/bucket-transitions.js';
import { type TestDatabase } from './database.js';

/** A change of a bucket's row that must not be. */
export interface BucketViolation {
  readonly rule: string;
  readonly bucket: string;
  /** The row before; null at its birth. */
  readonly before: Record<string, unknown> | null;
  /** The row after; null at its end. */
  readonly after: Record<string, unknown> | null;
}

/**
 * Notes, by a trigger, each change of a bucket's row that the table of transitions does not have, whoever made it, also a process that was
 * killed right afterwards. Who it was follows from the row: whoever takes a bucket away raises its epoch, and nobody else does. After the
 * migrations.
 */
export async function auditBuckets(database: TestDatabase): Promise<void> {
  const moves = BUCKET_TRANSITIONS.map(({ from, to, by }) => `('${from}', '${to}', '${by}')`).join(', ');
  const ends = BUCKET_ENDS.map(({ from, by }) => `('${from}', '${by}')`).join(', ');
  await database.query(`
    create table side_bucket_move (before text, after text, actor text);
    insert into side_bucket_move values ${moves};
    create table side_bucket_seen (id uuid primary key);
    create table side_bucket_violation (no bigserial, rule text, bucket uuid, before jsonb, after jsonb);

    create function side_audit_bucket() returns trigger language plpgsql security definer set search_path = public as $$
    declare
      rules text[] := '{}';
      takes boolean;
    begin
      if tg_op = 'INSERT' then
        insert into side_bucket_seen values (new.id) on conflict do nothing;
        if not found then rules := array_append(rules, 'an id is used once'); end if;
        if new.status <> 'active' or new.drainer_id is not null then rules := array_append(rules, 'a bucket begins active'); end if;
        if not exists (select from ratchet.node n where n.id = new.node_id and n.epoch = new.node_epoch and n.cordoned_at is null) then
          rules := array_append(rules, 'a bucket is opened by a registered node that nobody drained');
        end if;
      elsif tg_op = 'DELETE' then
        -- One that is lost is nobody's, whoever has tried to give it back.
        if (old.status, case when old.drainer_id is null or old.status = 'lost' then 'owner' else 'drainer' end) not in (${ends}) then
          rules := array_append(rules, 'a bucket ends at the end of its life');
        end if;
        if exists (select from ratchet.job j where j.bucket = old.id and j.status = 1) then
          rules := array_append(rules, 'a bucket that holds jobs does not end');
        end if;
      else
        takes := new.epoch > old.epoch;
        if (old.id, old.node_id, old.node_epoch, old.lane, old.kind) is distinct from (new.id, new.node_id, new.node_epoch, new.lane, new.kind)
           or old.priority is distinct from new.priority then
          rules := array_append(rules, 'a bucket keeps its owner, lane, priority and kind');
        end if;
        if new.epoch < old.epoch then rules := array_append(rules, 'an epoch never falls'); end if;
        if old.status = new.status and (takes or old.drainer_id is distinct from new.drainer_id
                                        or old.drainer_epoch is distinct from new.drainer_epoch) then
          rules := array_append(rules, 'a bucket is taken with a change of its status');
        end if;
        if old.status <> new.status and not exists (
             select from side_bucket_move m where m.before = old.status and m.after = new.status
                and (m.actor in ('watcher', 'drainer') or m.after = 'lost') = takes) then
          rules := array_append(rules, 'a bucket moves as the table says');
        end if;
        if new.status = 'draining' and takes and not exists (
             select from ratchet.node n where n.id = new.drainer_id and n.epoch = new.drainer_epoch) then
          rules := array_append(rules, 'a lost bucket is taken by a registered node');
        end if;
        if new.status = 'lost' and old.drainer_id is null and exists (
             select from ratchet.node n where n.id = old.node_id and n.epoch = old.node_epoch) then
          rules := array_append(rules, 'nothing is taken from a registered owner');
        end if;
        if new.status = 'ready_to_delete' and exists (select from ratchet.job j where j.bucket = new.id and j.status = 1) then
          rules := array_append(rules, 'a bucket that holds jobs is not ready_to_delete');
        end if;
      end if;
      insert into side_bucket_violation (rule, bucket, before, after)
      select r, coalesce(new.id, old.id), to_jsonb(old), to_jsonb(new) from unnest(rules) r;
      return null;
    end $$;
    create trigger side_audit_bucket after insert or update or delete on ratchet.bucket for each row execute function side_audit_bucket()`);
}

/** In the order in which they were made. */
export function bucketViolations(database: TestDatabase): Promise<BucketViolation[]> {
  return database.query<BucketViolation>(
    'select rule, bucket::text as bucket, before, after from side_bucket_violation order by no',
  );
}
