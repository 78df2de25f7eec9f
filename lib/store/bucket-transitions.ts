import { type BucketStatus } from './membership.js';

/**
 * Who may move a bucket: the node that owns it, a person who asks for its end, a healthy peer that watches heartbeats, or the peer that
 * took it over.
 */
export type BucketActor = 'owner' | 'operator' | 'watcher' | 'drainer';

export interface BucketTransition {
  readonly from: BucketStatus;
  readonly to: BucketStatus;
  readonly by: BucketActor;
}

/**
 * The life of a bucket, all of it: `active` claims, `completing` only finishes, `ready_to_drain` holds no execution,
 * `draining` gives back what is left, `ready_to_delete` holds no job. A stale owner's bucket is `lost` until a healthy node
 * drains it.
 */
export const BUCKET_TRANSITIONS: readonly BucketTransition[] = [
  { from: 'active', to: 'completing', by: 'owner' },
  { from: 'active', to: 'completing', by: 'operator' },
  { from: 'completing', to: 'ready_to_drain', by: 'owner' },
  { from: 'ready_to_drain', to: 'draining', by: 'owner' },
  { from: 'active', to: 'lost', by: 'watcher' },
  { from: 'completing', to: 'lost', by: 'watcher' },
  { from: 'ready_to_drain', to: 'lost', by: 'watcher' },
  { from: 'draining', to: 'lost', by: 'watcher' },
  { from: 'ready_to_delete', to: 'lost', by: 'watcher' },
  { from: 'lost', to: 'draining', by: 'drainer' },
  // It could not give everything back, or stops.
  { from: 'draining', to: 'lost', by: 'drainer' },
  { from: 'draining', to: 'ready_to_delete', by: 'owner' },
  // Told as a step; in the database one statement deletes it from `draining`.
  { from: 'draining', to: 'ready_to_delete', by: 'drainer' },
  // It leaves, its row is gone, and this could not be ended.
  ...(['active', 'completing', 'ready_to_drain', 'draining', 'ready_to_delete'] as const).map(
    (from): BucketTransition => ({ from, to: 'lost', by: 'owner' }),
  ),
];

/** From where a bucket's row is deleted, and by whom; always one that holds no job. An owner that leaves deletes what it has just lost. */
export const BUCKET_ENDS: readonly Omit<BucketTransition, 'to'>[] = [
  { from: 'ready_to_delete', by: 'owner' },
  { from: 'draining', by: 'drainer' },
  { from: 'lost', by: 'owner' },
];

export function mayMove(from: BucketStatus, to: BucketStatus, by: BucketActor): boolean {
  return BUCKET_TRANSITIONS.some((step) => step.from === from && step.to === to && step.by === by);
}

/** The statuses that the owner of an idle bucket walks through to remove it. */
export const OWNER_LEAVES: readonly BucketStatus[] = [
  'active',
  'completing',
  'ready_to_drain',
  'draining',
  'ready_to_delete',
];

/** The statuses from which `by` may move a bucket to `to`. */
export function statusesBefore(to: BucketStatus, by: BucketActor): readonly BucketStatus[] {
  return BUCKET_TRANSITIONS.filter((step) => step.to === to && step.by === by).map((step) => step.from);
}
