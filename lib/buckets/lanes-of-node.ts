import { nearest } from '../errors/nearest.js';
import { showValue } from '../errors/show-value.js';
import { JOB_PRIORITIES, type PriorityRank, rankOf } from '../jobs/priority.js';
import { DEFAULTS } from '../ratchet.defaults.js';
import { type NodeRegistration } from '../store/membership.js';
import { type LaneSettings } from './lane-settings.js';

/** A bucket that a node is to have. */
export interface PlannedBucket {
  readonly lane: string;
  /** Of jobs of this priority alone; absent: of all. */
  readonly priority?: PriorityRank;
}

/** A lane that a node serves, with what it is given. */
export interface ServedLane extends LaneSettings {
  readonly lane: string;
  readonly planned: readonly PlannedBucket[];
}

interface Settings {
  readonly concurrency: number;
  readonly lanes: ReadonlyMap<string, LaneSettings>;
}

/** What a lane is given on this node, named by the configuration or not. */
export function laneSettings({ concurrency, lanes }: Settings, lane: string): LaneSettings {
  return lanes.get(lane) ?? { concurrency, ...DEFAULTS.lane };
}

/**
 * The default lane, the configured ones, and every lane that a handler's definition names: a lane in a definition works
 * without configuration. A node without handlers serves nothing.
 */
export function lanesOfNode(settings: Settings, handlerLanes: readonly string[]): readonly ServedLane[] {
  if (handlerLanes.length === 0) return [];
  const lanes = new Set(['default', ...settings.lanes.keys(), ...handlerLanes]);
  return [...lanes].map((lane) => {
    const given = laneSettings(settings, lane);
    return { lane, ...given, planned: plannedBuckets(lane, given.buckets) };
  });
}

/** Most urgent first. */
function plannedBuckets(lane: string, buckets: LaneSettings['buckets']): readonly PlannedBucket[] {
  if (typeof buckets === 'number') return Array.from({ length: buckets }, () => ({ lane }));
  return JOB_PRIORITIES.toReversed().flatMap((priority) =>
    Array.from({ length: buckets[priority] }, () => ({ lane, priority: rankOf(priority) })),
  );
}

/** The priorities that a node has switched off, by lane. */
export function disabledPriorities(
  lanes: readonly Pick<ServedLane, 'lane' | 'buckets'>[],
): NonNullable<NodeRegistration['disabled']> {
  const disabled: Record<string, readonly PriorityRank[]> = {};
  for (const { lane, buckets } of lanes) {
    if (typeof buckets === 'number') continue;
    const ranks = JOB_PRIORITIES.filter((priority) => buckets[priority] === 0).map(rankOf);
    if (ranks.length > 0) disabled[lane] = ranks;
  }
  return disabled;
}

/** One line for each lane of the configuration that no handler of this node names: it may be misspelt. */
export function doubtedLanes({ lanes }: Settings, handlerLanes: readonly string[]): readonly string[] {
  const named = [...new Set(handlerLanes)];
  if (named.length === 0) return [];
  const configured = [...lanes.keys()];
  const unlike = named
    .filter((lane) => lane !== 'default' && !lanes.has(lane))
    .flatMap((lane) => {
      const near = nearest(lane, configured);
      // Where the configured one has a handler of its own as well; else the line below says it.
      if (near === undefined || !named.includes(near)) return [];
      return [
        `a handler of this node names the lane ${showValue(lane)}, which the option lanes does not; misspelt? did you mean ${showValue(near)}? ` +
          'It is served all the same, with what lanes have by default',
      ];
    });
  const unnamed = configured
    .filter((lane) => lane !== 'default' && !named.includes(lane))
    .map((lane) => {
      const near = nearest(lane, named);
      return (
        `lanes.${lane}: no handler of this node names the lane ${showValue(lane)}; misspelt?` +
        (near === undefined ? '' : ` did you mean ${showValue(near)}?`) +
        ' It is served all the same, for jobs whose enqueue names it'
      );
    });
  return [...unlike, ...unnamed];
}
