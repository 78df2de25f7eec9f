import { type Clock } from '../cluster/clock.js';
import { type DebugPoints } from '../observability/debug-points.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { inOwnContext } from '../observability/own-context.js';
import { type BucketRef, type ForeignStream, type HandlerFilter, type JobStore } from '../store/job-store.js';
import { type ClaimedJob } from '../store/job-store.js';
import { Floors, lastPlaces, type FloorsInUse } from './floors.js';
import { PassOver } from './pass-over.js';
import { Suspects } from './suspects.js';

export interface FloorKeeperParts {
  readonly bucket: BucketRef;
  readonly handlers: readonly HandlerFilter[];
  readonly store: JobStore;
  readonly clock: Clock;
  readonly events: EngineEvents;
  readonly debug: DebugPoints;
  /** Claims start elsewhere now: it is worth a turn. */
  readonly onChange: () => void;
  /** Due jobs without a handler here were found. */
  readonly onForeign: (lane: string, streams: readonly ForeignStream[]) => void;
  readonly onFault: (where: string, error: unknown) => void;
}

/** Keeps the floors of one bucket: asks the database on the service connection, away from the hot path. */
export class FloorKeeper {
  readonly #floors = new Floors();
  readonly #passOver = new PassOver();
  readonly #parts: FloorKeeperParts;
  #cancelTimer: (() => void) | undefined;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #looking = false;
  #stopped = false;

  constructor(parts: FloorKeeperParts) {
    this.#parts = parts;
  }

  /** Where the next claim starts. */
  inUse(): FloorsInUse {
    const { floors, generation } = this.#floors.inUse();
    const places = this.#passOver.places(this.#nowMs());
    const { hidden } = this.#passOver;
    return {
      floors: { ...floors, ...places },
      generation,
      ...(hidden === 0 ? {} : { readPast: hidden }),
    };
  }

  claimed(used: FloorsInUse, claimed: readonly ClaimedJob[]): void {
    // A suspect is taken from anywhere in its stream: what stands before it was passed over by nobody.
    const last = lastPlaces(claimed.filter((job) => !Suspects.is(job)));
    this.#floors.claimed(used, last);
    this.#passOver.claimed(last);
    this.#arm();
  }

  /** A claim found fewer jobs than it wanted: do jobs of other nodes stand in the way? */
  short(): void {
    const nowMs = this.#nowMs();
    if (this.#looking || this.#stopped || !this.#passOver.wantsLook(nowMs)) return;
    this.#passOver.beginLook(nowMs);
    this.#looking = true;
    void this.#look().finally(() => (this.#looking = false));
  }

  /** Something may have become claimable behind the floors. */
  behind(): void {
    this.#passOver.clear();
    this.#floors.behind();
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#disarm();
  }

  #nowMs(): number {
    return this.#parts.clock.monotonicMs();
  }

  #disarm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  #arm(): void {
    const nowMs = this.#nowMs();
    const inMs = this.#floors.nextProbeInMs(nowMs);
    if (inMs === undefined || this.#stopped || nowMs + inMs >= this.#timerAtMs) return;
    this.#disarm();
    this.#timerAtMs = nowMs + inMs;
    this.#cancelTimer = this.#parts.clock.timer(inMs, () => {
      this.#disarm();
      void inOwnContext(() => this.#probe());
    });
  }

  async #probe(): Promise<void> {
    const { store, bucket, handlers, events, debug } = this.#parts;
    const probe = this.#floors.beginProbe();
    try {
      const answer = await store.probe({ lane: bucket.lane, handlers, streams: probe.streams });
      await debug.reach('probe.answered', bucket.id);
      if (this.#stopped) return;
      const changes = this.#floors.probed(probe, answer, this.#nowMs());
      events.emit('probe', {
        bucket: bucket.id,
        lane: bucket.lane,
        streams: probe.streams.length,
        tookMs: answer.tookMs,
      });
      for (const change of changes) events.emit('floor', { bucket: bucket.id, lane: bucket.lane, ...change });
      if (changes.some(({ change }) => change !== 'raised')) this.#parts.onChange();
    } catch (error) {
      this.#floors.probeFailed(this.#nowMs());
      this.#parts.onFault('probe', error);
    }
    this.#arm();
  }

  async #look(): Promise<void> {
    const { store, bucket, handlers, events } = this.#parts;
    try {
      const { floors } = this.#floors.inUse();
      const beganMs = this.#nowMs();
      const streams = await store.foreign({
        lane: bucket.lane,
        handlers,
        floors,
        ...(bucket.priority === undefined ? {} : { priority: bucket.priority }),
      });
      const nowMs = this.#nowMs();
      if (this.#stopped || !this.#passOver.looked(streams, nowMs, nowMs - beganMs)) return;
      const names = [...new Set(streams.flatMap((stream) => stream.names))];
      const jobs = streams.reduce((sum, stream) => sum + stream.foreign, 0);
      events.emit('passed_over', { lane: bucket.lane, names, jobs });
      this.#parts.onForeign(bucket.lane, streams);
      this.#parts.onChange();
    } catch (error) {
      this.#parts.onFault('look for jobs of other nodes', error);
    }
  }
}
