import { type LaneSettings } from './buckets/lane-settings.js';
import { showValue } from './errors/show-value.js';
import { JOB_PRIORITIES, type JobPriority } from './jobs/priority.js';
import { JOB_LIMITS, textFault } from './jobs/limits.js';
import { DEFAULTS } from './ratchet.defaults.js';
import { isPlainObject, type OptionReader } from './ratchet.option-reader.js';

const MOST_BUCKETS = 50;
const MOST_BUFFERED = 10_000;

/** The options `lanes` and `buckets`: what the lanes that they name are given, of the `concurrency` of the node. */
export function readLanes(options: OptionReader, concurrency: number): ReadonlyMap<string, LaneSettings> {
  const lanes = options.section('lanes');
  const read = new Map<string, LaneSettings>();
  const shared = options.has('buckets');
  for (const name of shared ? new Set(['default', ...lanes.keys()]) : lanes.keys()) {
    const lane = lanes.section(name);
    const fault = textFault(name, JOB_LIMITS.laneLength);
    if (fault) options.refuse('lanes', `${showValue(name)} is no name of a lane; allowed: ${fault}`);
    const short = shared && name === 'default';
    if (short && lane.has('buckets')) {
      lane.refuse('buckets', 'is given twice, here and as the top-level buckets; give one of them');
    }
    read.set(name, readLane(lane, short ? options : lane, concurrency));
    lane.finish();
  }
  const reserved = [...read.values()].reduce((sum, lane) => sum + lane.reserved, 0);
  if (reserved > concurrency) {
    const each = [...read].filter(([, lane]) => lane.reserved > 0).map(([name]) => `lanes.${name}.reserved`);
    options.refuse(
      'lanes',
      `${each.join(' + ')} are ${reserved}, more than the ${concurrency} slots of the node; raise concurrency, or lower them`,
    );
  } else if (reserved === concurrency) {
    // The default lane is always served, and so is one that starves.
    options.refuse(
      'lanes',
      `all ${concurrency} slots of the node are reserved, so that other lanes and fallback buckets would never run a job; raise concurrency, or lower what is reserved`,
    );
  }
  return read;
}

function readLane(lane: OptionReader, buckets: OptionReader, slots: number): LaneSettings {
  const { reserved, bufferSize } = DEFAULTS.lane;
  const read = {
    concurrency: lane.whole('concurrency', slots, 1, 10_000),
    reserved: lane.whole('reserved', reserved, 0, 10_000),
    buckets: readBuckets(buckets),
    bufferSize: lane.whole('bufferSize', bufferSize, 0, MOST_BUFFERED),
  };
  if (read.concurrency > slots) {
    lane.refuse(
      'concurrency',
      `${read.concurrency} is more than the ${slots} slots of the node; raise concurrency, or lower this`,
    );
  }
  if (read.reserved > read.concurrency) {
    lane.refuse(
      'reserved',
      `${read.reserved} is more than the lane's concurrency (${read.concurrency}); lower it, or raise that`,
    );
  }
  return read;
}

function readBuckets(owner: OptionReader): LaneSettings['buckets'] {
  const value = owner.peek('buckets');
  if (!isPlainObject(value)) {
    if (value === undefined || typeof value === 'number')
      return owner.whole('buckets', DEFAULTS.lane.buckets, 1, MOST_BUCKETS);
    owner.wrong('buckets', `a whole number from 1 to ${MOST_BUCKETS}, or one from 0 for each priority`);
    return DEFAULTS.lane.buckets;
  }
  const given = owner.section('buckets');
  const each = {} as Record<JobPriority, number>;
  for (const priority of JOB_PRIORITIES) each[priority] = given.whole(priority, 1, 0, MOST_BUCKETS);
  given.finish();
  if (Object.values(each).every((count) => count === 0)) {
    owner.refuse('buckets', 'switches every priority off; leave at least one, or leave the lane out');
  }
  return each;
}
