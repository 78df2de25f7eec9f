import { type BucketSlots } from './slots.js';

/** Of one lane, in slots. */
export interface LaneSlots {
  readonly lane: string;
  /** It never has more. */
  readonly concurrency: number;
  /** Kept for it. */
  readonly reserved: number;
}

export interface BucketShareOptions {
  /** It is served before all others that wait. */
  readonly first?: boolean;
  /** There is room for it now, after it wanted some and found none. */
  readonly onRoom: () => void;
}

/**
 * The slots of a node, shared by its buckets by need:
 *
 * - A lane has at most its `concurrency`, and what is reserved for it and not in use is free for nobody else.
 * - While no bucket waits, all that is free is lent to whoever asks.
 * - A bucket **waits** when it wants slots and finds none free. One that waits with less than its fair share is **short**: until it
 *   is served, those that have their fair share get nothing more, and the others no more than is missing to theirs. What comes free
 *   goes to those who are short, the one that waits longest first.
 * - A **fair share** is the same part, at least one slot, for each bucket that holds or wants some, of the node and of its lane.
 *
 * Nothing is taken away from a bucket: a share evens out as executions end. As long as nobody waits, every step costs the same
 * however many buckets there are.
 */
export class NodeSlots {
  readonly #lanes = new Map<string, Lane>();
  /** Those that wait: the first ones first, then as long as they wait. */
  readonly #queue: Share[] = [];
  #used = 0;
  /** Reserved and not in use, of all lanes. */
  #kept = 0;
  /** Buckets that hold or want slots. */
  #active = 0;

  constructor(
    readonly capacity: number,
    lanes: readonly LaneSlots[],
  ) {
    for (const { lane, concurrency, reserved } of lanes) {
      this.#lanes.set(lane, new Lane(concurrency, reserved));
      this.#kept += reserved;
    }
  }

  /** Taken, or reserved by an exchange that is on its way. */
  get used(): number {
    return this.#used;
  }

  /**
   * The slots of a bucket that begins. What it has taken stays taken until it is given back, also when the bucket itself is gone: bodies
   * that do not heed their signal keep their slots.
   */
  of(laneName: string, { first = false, onRoom }: BucketShareOptions): BucketSlots {
    const lane = this.#lanes.get(laneName) ?? new Lane(this.capacity, 0);
    this.#lanes.set(laneName, lane);
    return this.#sharer(new Share(lane, first, onRoom));
  }

  #sharer(share: Share): BucketSlots {
    const freeOf = (): number => this.#freeOf(share);
    const hold = (count: number): void => this.#hold(share, count);
    return {
      get free() {
        return freeOf();
      },
      reserve: (most) => {
        const count = Math.min(most, freeOf());
        if (count <= 0) return 0;
        this.#dequeue(share);
        hold(count);
        return count;
      },
      unreserve: (count) => hold(-count),
      take: () => hold(1),
      giveBack: () => hold(-1),
      wants: (yes) => this.#want(share, yes),
    };
  }

  #hold(share: Share, count: number): void {
    if (count === 0) return;
    const { lane } = share;
    this.#kept -= lane.kept;
    lane.used += count;
    this.#kept += lane.kept;
    this.#used += count;
    share.held += count;
    this.#count(share);
    this.#offer();
  }

  #want(share: Share, yes: boolean): void {
    share.wanting = yes;
    this.#count(share);
    if (!yes) this.#dequeue(share);
    else {
      share.told = this.#freeOf(share) > 0;
      if (!share.told && !this.#queue.includes(share)) this.#enqueue(share);
    }
    this.#offer();
  }

  /** Whether it is one of those that hold or want slots. */
  #count(share: Share): void {
    const active = share.held > 0 || share.wanting;
    if (active === share.active) return;
    share.active = active;
    this.#active += active ? 1 : -1;
    share.lane.active += active ? 1 : -1;
  }

  #enqueue(share: Share): void {
    const end = share.first ? this.#queue.findIndex(({ first }) => !first) : -1;
    if (end < 0) this.#queue.push(share);
    else this.#queue.splice(end, 0, share);
  }

  #dequeue(share: Share): void {
    const place = this.#queue.indexOf(share);
    if (place >= 0) this.#queue.splice(place, 1);
  }

  /** Tells those that wait and see room by now. */
  #offer(): void {
    if (this.#queue.length === 0 || this.#used >= this.capacity) return;
    for (const share of [...this.#queue]) {
      if (share.told || this.#freeOf(share) === 0) continue;
      share.told = true;
      share.onRoom();
    }
  }

  #freeOf(share: Share): number {
    const { lane } = share;
    const keptForOthers = this.#kept - lane.kept;
    const room = Math.min(lane.concurrency - lane.used, this.capacity - this.#used - keptForOthers);
    if (room <= 0) return 0;
    return this.#queue.length === 0 ? room : this.#fairPart(share, room);
  }

  #fairPart(share: Share, room: number): number {
    const { lane } = share;
    const missing = this.#fairShare(share) - share.held;
    let others = false;
    /** Those that are short and are served before it. */
    let before = 0;
    let beforeOfLane = 0;
    let passed = false;
    for (const one of this.#queue) {
      passed ||= one === share || (share.first && !one.first);
      const rivals = one.lane === lane || one.lane.used < one.lane.concurrency;
      if (one === share || !rivals || one.held >= this.#fairShare(one)) continue;
      others = true;
      if (passed && missing > 0) continue;
      before += 1;
      if (one.lane === lane) beforeOfLane += 1;
    }
    if (!others) return room;
    const fair = missing > 0 ? Math.min(room - before, missing) : 0;
    // No other lane can use them.
    const reserved = Math.min(room, lane.kept - beforeOfLane);
    return Math.max(0, fair, reserved);
  }

  #fairShare({ lane }: Share): number {
    const ofNode = Math.floor(this.capacity / this.#active);
    const ofLane = Math.floor(lane.concurrency / lane.active);
    return Math.max(1, Math.min(ofNode, ofLane));
  }
}

class Lane {
  used = 0;
  active = 0;

  constructor(
    readonly concurrency: number,
    readonly reserved: number,
  ) {}

  get kept(): number {
    return Math.max(0, this.reserved - this.used);
  }
}

class Share {
  held = 0;
  wanting = false;
  active = false;
  /** It knows that there is room. */
  told = false;

  constructor(
    readonly lane: Lane,
    readonly first: boolean,
    readonly onRoom: () => void,
  ) {}
}
