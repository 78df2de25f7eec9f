import { counted } from './counted.js';
import { RatchetError } from './ratchet-error.js';
import { showValue } from './show-value.js';
import { wrongValue } from './wrong-value.js';

/** An argument of `RatchetBuckets` cannot be right. Nothing was changed. */
export class InvalidBucketArgumentError extends RatchetError {
  override readonly code = 'INVALID_BUCKET_ARGUMENT';

  constructor(
    /** The method: `drainBucket`, `moveLane`. */
    readonly call: string,
    /** Which: `lane`, `from`, `options.priority`. */
    readonly argument: string,
    readonly value: unknown,
    readonly allowed: string,
  ) {
    super(`INVALID_BUCKET_ARGUMENT: ${call}: ${argument}: ${wrongValue(value, allowed)}`);
  }
}

/** There is no such bucket (any more). */
export class BucketNotFoundError extends RatchetError {
  override readonly code = 'BUCKET_NOT_FOUND';

  constructor(readonly bucket: string) {
    super(
      `BUCKET_NOT_FOUND: drainBucket: ${showValue(bucket)} is no bucket: it was never there, or its node has removed it; list() names those that are`,
    );
  }
}

/** No node of that id is registered (any more). */
export class NodeNotFoundError extends RatchetError {
  override readonly code = 'NODE_NOT_FOUND';

  constructor(
    readonly call: string,
    readonly node: string,
  ) {
    super(
      `NODE_NOT_FOUND: ${call}: ${showValue(node)} is no node: it was never registered, has left, or was declared dead; RatchetMonitor.nodes() names those that are`,
    );
  }
}

/** The node was drained by hand: it opens no bucket until `undrainNode`, or until its process starts again. */
export class NodeCordonedError extends RatchetError {
  override readonly code = 'NODE_CORDONED';

  constructor(readonly node: string) {
    super(
      `NODE_CORDONED: node ${showValue(node)} was drained by hand and opens no bucket; RatchetBuckets.undrainNode(${showValue(node)}) lets it serve again`,
    );
  }
}

/** Every live node that serves the lane has switched the priority off: nobody would run the job. Your transaction can go on. */
export class PriorityDisabledError extends RatchetError {
  override readonly code = 'PRIORITY_DISABLED';

  constructor(
    /** What was refused: the job, by the name of its definition; the call, `moveLane`. */
    readonly what: string,
    readonly lane: string,
    readonly priority: 'lowest' | 'low' | 'normal' | 'high' | 'critical',
    /** Those that serve the lane, by id. */
    readonly nodes: readonly string[],
  ) {
    super(
      `PRIORITY_DISABLED: ${showValue(what)}: priority "${priority}" of lane ${showValue(lane)} is switched off by ${whom(nodes)}; ` +
        'give the job another priority or lane, or give the priority a bucket (option "buckets" of the lane, not 0) on one of them',
    );
  }
}

const MOST_NAMED = 5;

function whom(nodes: readonly string[]): string {
  if (nodes.length === 0) return 'every node that serves it';
  const named = nodes.slice(0, MOST_NAMED).join(', ');
  const more = nodes.length > MOST_NAMED ? `, and ${nodes.length - MOST_NAMED} more` : '';
  return `${counted(nodes.length, 'node')}, all that serve it (${named}${more})`;
}
