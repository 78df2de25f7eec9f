import { expect } from '@jest/globals';
import { type Settlement } from '../../lib/store/job-store.js';
import { turn } from '../support/store.js';
import { type Turn } from './fleet-commands.js';
import { type ModelBucket, type ModelClaim, type ModelJob, type Outcome } from './fleet-model.js';
import { type FleetWorld } from './fleet-world.js';

type Settling = readonly [ModelClaim, Outcome];

/**
 * One exchange, of a process that may have lost its bucket long ago, and what must follow from it: a write counts exactly while its claim
 * stands, and a claim or a start mark exactly while the bucket is its node's and the lane is not paused.
 */
export async function takeTurn(
  world: FleetWorld,
  bucket: ModelBucket,
  spec: Omit<Turn, 'bucket'>,
): Promise<void> {
  const { node } = bucket;
  const held = node.claims.filter((claim) => claim.bucket === bucket);
  const waiting = held.filter(({ begun }) => !begun);
  const released = spec.release === 0 ? [] : waiting.slice(-spec.release);
  const beginning = bucket.buffers
    ? waiting.filter((claim) => !released.includes(claim)).slice(0, spec.begin)
    : [];
  const settling: Settling[] = released.map((claim) => [claim, 'released']);
  const running = held.filter(({ begun }) => begun);
  for (const { claim, outcome } of spec.settle) {
    const [settled] = running.length === 0 ? [] : running.splice(claim % running.length, 1);
    if (settled) settling.push([settled, outcome]);
  }
  const { owned, status } = bucket;
  const claimable = claimableNow(world, bucket);
  const forget = bucket.marks.filter(({ claims }) => !claims.some((claim) => node.claims.includes(claim)));
  bucket.marks = bucket.marks.filter((mark) => !forget.includes(mark));
  const mark = beginning.length > 0 ? (bucket.lastMark += 1) : 0;
  const beginNow = Math.min(spec.beginNow, spec.want);
  const answer = await world.fleet.store.exchange(
    turn(bucket.ref, {
      settle: settling.map(settlementOf),
      want: spec.want,
      suspect: !bucket.buffers || beginNow > 0,
      ...(bucket.buffers
        ? { ahead: { beginNow, begin: beginning.map(tokenOf), mark, forget: forget.map(({ no }) => no) } }
        : {}),
    }),
  );
  expect({ owned: answer.owned, completing: answer.completing, skipped: answer.skipped }).toEqual({
    owned,
    completing: owned && status === 'completing',
    skipped: [],
  });
  settled(settling, answer);
  begun(bucket, beginning, mark, world.paused.has(bucket.ref.lane), answer.gone);
  expect(answer.claimed.length).toBeGreaterThanOrEqual(Math.min(spec.want, claimable.sure.length));
  for (const { id, claimSeq, begun: byClaim, crashes } of answer.claimed) {
    const job = claimable.all.find((each) => each.id === id);
    if (!job) throw new Error(`job ${id} was claimed, although it could not be`);
    node.claims.push(job.claimed(bucket, byClaim));
    expect({ claimSeq, crashes }).toEqual({ claimSeq: String(job.seq), crashes: job.crashes });
  }
  // One that may be a poison pill is the first to begin, wherever it stands in the order.
  const order = [...answer.claimed].sort((a, b) => Number(b.crashes >= 2) - Number(a.crashes >= 2));
  expect(order.map((job) => job.begun)).toEqual(order.map((_, place) => !bucket.buffers || place < beginNow));
}

/** What it may claim; of those, the ones that it must if it asks for enough: a poison suspect waits for its turn, and for its time. */
function claimableNow(
  world: FleetWorld,
  bucket: ModelBucket,
): { readonly all: readonly ModelJob[]; readonly sure: readonly ModelJob[] } {
  if (bucket.taken || bucket.status !== 'active' || world.paused.has(bucket.ref.lane)) {
    return { all: [], sure: [] };
  }
  const all = [...world.jobs.values()].filter(
    (job) => job.place === 'pending' && bucket.serves(job) && job.dueMs <= world.nowMs,
  );
  return { all, sure: all.filter(({ crashes }) => crashes < 2) };
}

function settled(
  settling: readonly Settling[],
  answer: { recorded: readonly string[]; lost: readonly string[] },
): void {
  const stands = ([claim]: Settling): boolean => claim.job.claim === claim;
  const ids = (list: readonly Settling[]): string[] => list.map(([{ job }]) => job.id).sort();
  expect({ recorded: [...answer.recorded].sort(), lost: [...answer.lost].sort() }).toEqual({
    recorded: ids(settling.filter(stands)),
    lost: ids(settling.filter((each) => !stands(each))),
  });
  for (const [claim, outcome] of settling) {
    if (claim.job.claim === claim) claim.job.settled(outcome);
    const { node } = claim.bucket;
    node.claims = node.claims.filter((each) => each !== claim);
  }
}

function begun(
  bucket: ModelBucket,
  beginning: readonly ModelClaim[],
  no: number,
  paused: boolean,
  gone: readonly string[],
): void {
  const may = beginning.filter((claim) => bucket.owned && !paused && claim.job.claim === claim);
  const refused = beginning.filter((claim) => !may.includes(claim));
  expect([...gone].sort()).toEqual(refused.map(({ job }) => job.id).sort());
  for (const claim of may) {
    claim.begun = true;
    claim.byMark = true;
  }
  if (may.length > 0) bucket.marks.push({ no, claims: may });
}

const tokenOf = ({ job, seq }: ModelClaim): { id: string; claimSeq: string } => ({
  id: job.id,
  claimSeq: seq,
});

function settlementOf([claim, outcome]: Settling): Settlement {
  return {
    ...tokenOf(claim),
    outcome,
    ...(outcome === 'retried' || outcome === 'snoozed' ? { delayMs: 0 } : {}),
    ...(outcome === 'failed' || outcome === 'retried' ? { error: 'e' } : {}),
    ...(claim.byMark ? { ranMs: 1 } : {}),
  };
}
