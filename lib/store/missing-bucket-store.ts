import { InvalidOptionError } from '../errors/boot-errors.js';
import { BucketStore } from './bucket-store.js';

/**
 * Stands in where a `jobStore` of the app's own comes without a `bucketStore`: an app whose people do nothing by hand needs none, and one
 * of which they ask something is told then. Does nothing else.
 */
export class MissingBucketStore extends BucketStore {
  override buckets = refuse;
  override lanes = refuse;
  override pauseLane = refuse;
  override resumeLane = refuse;
  override drainBucket = refuse;
  override drainLane = refuse;
  override drainNode = refuse;
  override undrainNode = refuse;
  override moveObstacles = refuse;
  override move = refuse;
  override agreeOnPriorities = refuse;
}

function refuse(): Promise<never> {
  const problem =
    'is not given, and the one for PostgreSQL needs its jobStore; RatchetBuckets needs a bucketStore too';
  return Promise.reject(new InvalidOptionError([{ option: 'bucketStore', problem }]));
}
