import fc from 'fast-check';
import { type PriorityRank } from '../../lib/jobs/priority.js';
import { LANES, type Lane, type Outcome, OUTCOMES } from './fleet-model.js';

/** What happens to a fleet. A number stands for one of those that there are, if there is one. */
export type Command =
  | { readonly do: 'join'; readonly buckets: readonly NewBucket[] }
  | ({ readonly do: 'open'; readonly node: number } & NewBucket)
  | {
      readonly do: 'insert';
      readonly lane: Lane;
      readonly priority: PriorityRank;
      readonly count: number;
      readonly late: boolean;
    }
  | ({ readonly do: 'turn' } & Turn)
  /** What a process that stopped, or was declared dead, still writes. */
  | ({ readonly do: 'zombie' } & Turn)
  | { readonly do: 'complete' | 'zombie step'; readonly bucket: number }
  | { readonly do: 'leave'; readonly node: number; readonly dies: number | undefined }
  | { readonly do: 'crash' | 'thaw'; readonly node: number }
  /** It crashes, it is silent for too long, and another one takes back what it held. */
  | { readonly do: 'death'; readonly node: number; readonly by: number }
  | { readonly do: 'restart'; readonly node: number; readonly dies: number | undefined }
  | { readonly do: 'pass' }
  | {
      readonly do: 'rescue';
      readonly node: number;
      /** Another one does the same at the same time. */
      readonly beside: number | undefined;
      readonly dies: number | undefined;
      readonly aborts: number | undefined;
    }
  /** A look for jobs that nobody serves, and a bucket for them. */
  | { readonly do: 'fallback'; readonly node: number; readonly lane: Lane }
  | { readonly do: 'pause lane' | 'resume lane' | 'drain lane'; readonly lane: Lane }
  | { readonly do: 'drain bucket'; readonly bucket: number }
  | { readonly do: 'drain node' | 'undrain node'; readonly node: number }
  | { readonly do: 'move lane'; readonly from: Lane };

export interface NewBucket {
  readonly lane: Lane;
  readonly priority: PriorityRank | undefined;
  readonly buffers: boolean;
}

/** One exchange: settle some, give back and begin some that were claimed ahead, claim some. */
export interface Turn {
  readonly bucket: number;
  readonly settle: readonly { readonly claim: number; readonly outcome: Outcome }[];
  readonly release: number;
  readonly begin: number;
  readonly want: number;
  readonly beginNow: number;
}

const index = fc.nat(30);
const lane = fc.constantFrom(...LANES);
const rank = fc.constantFrom<PriorityRank>(2, 4, 0);
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });

const newBucket = {
  lane,
  priority: fc.option(fc.constantFrom<PriorityRank>(2, 4), { nil: undefined, freq: 2 }),
  buffers: fc.boolean(),
};
/** On the way of a rescue: most are over after a dozen. */
const dies = fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined, freq: 3 });
const turn = {
  bucket: index,
  settle: fc.array(fc.record({ claim: index, outcome: fc.constantFrom(...OUTCOMES) }), { maxLength: 2 }),
  release: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
  begin: fc.nat(3),
  want: fc.nat(8),
  beginNow: fc.nat(2),
};

export const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('join' as const),
      buckets: fc.array(fc.record(newBucket), { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('open' as const), node: index, ...newBucket }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('insert' as const),
      lane,
      priority: rank,
      count: fc.integer({ min: 1, max: 6 }),
      late: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
    }),
  },
  { weight: 14, arbitrary: fc.record({ do: fc.constant('turn' as const), ...turn }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('zombie' as const), ...turn }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('complete' as const, 'zombie step' as const), bucket: index }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), node: index, dies }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('crash' as const, 'crash' as const, 'thaw' as const),
      node: index,
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('death' as const), node: index, by: index }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), node: index, dies }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('pass' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('fallback' as const), node: index, lane }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('rescue' as const),
      node: index,
      beside: maybe(index),
      dies,
      aborts: fc.option(fc.nat(4), { nil: undefined, freq: 3 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('pause lane' as const, 'resume lane' as const, 'drain lane' as const),
      lane,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drain bucket' as const), bucket: index }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('drain node' as const, 'drain node' as const, 'undrain node' as const),
      node: index,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('move lane' as const), from: lane }) },
);
