/** The lanes that a node serves, each with the concurrency of its bucket. */
export interface ServedLane {
  readonly lane: string;
  readonly concurrency: number;
}

interface LaneSettings {
  readonly concurrency: number;
  readonly lanes: ReadonlyMap<string, { readonly concurrency: number }>;
}

/**
 * The default lane, the configured ones, and every lane that a handler's definition names: a lane in a definition works
 * without configuration. A node without handlers serves nothing.
 */
export function lanesOfNode(settings: LaneSettings, handlerLanes: readonly string[]): readonly ServedLane[] {
  if (handlerLanes.length === 0) return [];
  const lanes = new Set(['default', ...settings.lanes.keys(), ...handlerLanes]);
  return [...lanes].map((lane) => ({
    lane,
    concurrency: settings.lanes.get(lane)?.concurrency ?? settings.concurrency,
  }));
}
