import { type BucketInfo, type JobScheduler, type RatchetBuckets } from 'nestjs-ratchet';
import { bucketTable, shown, statusOf } from './bucket-table.js';

const EVERY_MS = 250;
/** Without a terminal, where each look stays. */
const FIGURES_EVERY = 8;
const LANES = ['mail', 'reports'];

/** What the view writes to. */
export type ViewOutput = Pick<NodeJS.WriteStream, 'write'> & {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
};

export interface LiveViewParts {
  readonly buckets: Pick<RatchetBuckets, 'list'>;
  readonly scheduler: Pick<JobScheduler, 'count'>;
  readonly out: ViewOutput;
}

/**
 * The buckets of the cluster, looked at four times a second. In a terminal a table below the lines of the story, painted over in place;
 * elsewhere (a pipe, a log) a line for the buckets of a node that come, go or change their status, and the figures every other second.
 */
export class LiveView {
  readonly #parts: LiveViewParts;
  #looking: Promise<void> = Promise.resolve();
  #tick: NodeJS.Timeout | undefined;
  #table: readonly string[] = [];
  #painted = 0;
  #seen = new Map<string, { bucket: BucketInfo; status: string }>();
  #looks = 0;

  constructor(parts: LiveViewParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#tick = setInterval(() => void this.look(), EVERY_MS);
  }

  /** Leaves the last table where it is. */
  async stop(): Promise<void> {
    clearInterval(this.#tick);
    await this.look();
    this.#painted = 0;
    this.#table = [];
  }

  /** One look; never two at a time. A look that the database refuses is left out. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look()).catch(() => undefined);
    return this.#looking;
  }

  /** A line of the story, above the table. */
  say(line: string): void {
    this.#erase();
    this.#parts.out.write(`${line}\n`);
    this.#paint();
  }

  async #look(): Promise<void> {
    const { buckets, scheduler, out } = this.#parts;
    const [list, ...waiting] = await Promise.all([
      buckets.list(),
      ...LANES.map((lane) => scheduler.count({ lane, status: 'pending' })),
    ]);
    const figures = LANES.map((lane, place) => figuresOf(lane, list, waiting[place] ?? 0)).join(' · ');
    if (out.isTTY) {
      this.#erase();
      this.#table = ['', ...bucketTable(list), '', figures];
      this.#paint();
    } else {
      this.#tellChanges(list);
      if (this.#looks++ % FIGURES_EVERY === 0) this.say(`  ${figures}`);
    }
  }

  #tellChanges(list: readonly BucketInfo[]): void {
    const now = new Map(shown(list).map((bucket) => [bucket.id, { bucket, status: statusOf(bucket) }]));
    const changes = new Map<string, string[]>();
    const note = ({ node, lane, priority }: BucketInfo, change: string): void => {
      const key = `${node.id}: ${change}`;
      changes.set(key, [...(changes.get(key) ?? []), `${lane}/${priority ?? 'all'}`]);
    };
    for (const [id, { bucket, status }] of now) {
      const before = this.#seen.get(id)?.status ?? 'new';
      if (before !== status) note(bucket, `${before} -> ${status}`);
    }
    for (const [id, { bucket, status }] of this.#seen) if (!now.has(id)) note(bucket, `${status} -> gone`);
    for (const [change, names] of changes) this.say(`  ${change}: ${names.join(', ')}`);
    this.#seen = now;
  }

  #erase(): void {
    if (this.#painted > 0) this.#parts.out.write(`\u001b[${String(this.#painted)}A\u001b[0J`);
    this.#painted = 0;
  }

  /** No line may wrap, and the first one must not leave the screen: neither could be painted over. */
  #paint(): void {
    const { out } = this.#parts;
    if (!out.isTTY || this.#table.length === 0) return;
    const { columns = 80, rows = 24 } = out;
    const fitting = this.#table.length < rows ? this.#table : this.#table.slice(0, Math.max(1, rows - 1));
    out.write(fitting.map((line) => `${line.slice(0, columns - 1)}\n`).join(''));
    this.#painted = fitting.length;
  }
}

function figuresOf(lane: string, list: readonly BucketInfo[], waiting: number): string {
  const own = list.filter((bucket) => bucket.lane === lane);
  const sum = (of: 'begun' | 'buffered'): string =>
    String(own.reduce((total, bucket) => total + bucket[of], 0));
  return `${lane}: ${sum('begun')} running, ${sum('buffered')} buffered, ${String(waiting)} waiting`;
}
