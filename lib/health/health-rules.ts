import { type RatchetSnapshot } from '../index.js';

/** Settles would soon have to make their own. */
const FEWEST_DAYS = 3;

/** Why the process should be started again; undefined when it should not. What a restart does not mend is no reason. */
export function whyNotLive({ state, startFault, eventLoop }: RatchetSnapshot): string | undefined {
  if (startFault !== undefined) return `the node will never begin: ${startFault}`;
  switch (state) {
    case 'idle':
    case 'starting':
    case 'running':
      break;
    // Whoever drains it ends it: a restart would end its jobs.
    case 'draining':
    case 'drained':
      return undefined;
    case 'closed':
      return 'the engine is closed and cannot be started again';
    default:
      return `the state ${String(state satisfies never)} is unknown`;
  }
  if (eventLoop && eventLoop.overdueMs > eventLoop.stallLimitMs) {
    return `the engine's timer is ${eventLoop.overdueMs} ms overdue (heartbeat.stallLimit is ${eventLoop.stallLimitMs} ms)`;
  }
  return undefined;
}

/** Why it should get no work or traffic now; undefined when it should. */
export function whyNotReady(snapshot: RatchetSnapshot): string | undefined {
  const { state, startFault, worker, heartbeat, faults } = snapshot;
  if (startFault !== undefined) return `the node will never begin: ${startFault}`;
  if (state === 'idle' || state === 'starting') {
    return faults.standing.length > 0
      ? `not started yet: ${faults.standing.join(', ')} fails and is tried again`
      : 'not started yet';
  }
  if (state !== 'running') return `not running any more: ${state}`;
  if (!worker) return undefined;
  if (!heartbeat) return 'the node has no heartbeat';
  if (!heartbeat.held) {
    const { acknowledgedAgeMs: ageMs, graceMs } = heartbeat;
    const last = ageMs === undefined ? 'none so far' : `the last ${ageMs} ms ago`;
    return `no heartbeat was acknowledged within ${graceMs} ms (${last}): other nodes may take its jobs back`;
  }
  return undefined;
}

/** What is wrong although it works. */
export function degradations(snapshot: RatchetSnapshot): string[] {
  const { coordinator, partitions, faults, lanes, heartbeat, state, eventLoop } = snapshot;
  const found: string[] = [];
  const say = (is: boolean, what: () => string): void => {
    if (is) found.push(what());
  };
  if (state !== 'running') return found;
  say(
    coordinator.state === 'down',
    () =>
      `messages of other nodes do not arrive (${coordinator.detail ?? 'no reason given'}): work is found by polling`,
  );
  say(faults.standing.length > 0, () => `fails and is tried again: ${faults.standing.join(', ')}`);
  if (partitions) {
    say(
      partitions.daysAhead < FEWEST_DAYS,
      () =>
        `history partitions exist for ${partitions.daysAhead} more ${partitions.daysAhead === 1 ? 'day' : 'days'} only`,
    );
  }
  if (heartbeat) {
    const ageMs = heartbeat.acknowledgedAgeMs ?? 0;
    say(ageMs > heartbeat.graceMs / 2, () => `the last acknowledged heartbeat is ${ageMs} ms old`);
  }
  if (eventLoop && heartbeat) {
    say(
      eventLoop.worstMs > heartbeat.graceMs,
      () => `the event loop stood still for ${eventLoop.worstMs} ms within the last minute`,
    );
  }
  for (const { lane, bucket } of lanes) {
    say(bucket === undefined, () => `lane "${lane}" has no bucket: nothing of it is claimed`);
  }
  return found;
}
