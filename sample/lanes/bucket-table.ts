import { type BucketInfo } from 'nestjs-ratchet';

/** One look at the buckets, as rows of a table. */
export function bucketTable(buckets: readonly BucketInfo[]): string[] {
  const rows = shown(buckets).map((bucket) => [
    bucket.lane,
    bucket.priority ?? 'all',
    bucket.node.id,
    statusOf(bucket),
    String(bucket.begun),
    String(bucket.buffered),
    `${String(Math.floor(bucket.ageMs / 1_000))} s`,
  ]);
  return [HEAD, ...rows].map((row) => row.map((cell, place) => fit(cell, place)).join('  '));
}

/** Of the lanes of the sample: every node serves `default` as well, and has nothing to do there. */
export function shown(buckets: readonly BucketInfo[]): BucketInfo[] {
  return buckets
    .filter(({ lane }) => lane !== 'default')
    .toSorted(
      (a, b) =>
        a.lane.localeCompare(b.lane) ||
        a.node.id.localeCompare(b.node.id) ||
        rank(b) - rank(a) ||
        b.ageMs - a.ageMs,
    );
}

/** `active`, or what the lane says of it. */
export function statusOf({ status, lanePaused }: BucketInfo): string {
  return status === 'active' && lanePaused ? 'paused' : status;
}

const HEAD = ['LANE', 'PRIORITY', 'NODE', 'STATUS', 'RUNNING', 'BUFFERED', 'AGE'];
const WIDTHS = [8, 8, 7, 15, 7, 8, 5];
const PRIORITIES = ['lowest', 'low', 'normal', 'high', 'critical'];

function rank({ priority }: BucketInfo): number {
  return priority === undefined ? -1 : PRIORITIES.indexOf(priority);
}

/** Figures to the right. */
function fit(cell: string, place: number): string {
  const width = WIDTHS[place] ?? 0;
  return place >= 4 ? cell.padStart(width) : cell.padEnd(width);
}
