import { type EngineEventMap, type EngineEvents, type SettledExecution } from './engine-events.js';
import {
  type ExecutionEvent,
  type JobReleasedEvent,
  type RatchetEventMap,
  type RatchetEventName,
} from './ratchet-event-map.js';

/** Hears the engine for one event of the catalogue, and tells what it makes of it. Returns the function that unregisters. */
type Bridge<N extends RatchetEventName> = (
  engine: EngineEvents,
  tell: (payload: RatchetEventMap[N]) => void,
) => () => void;

/** Where each event of the catalogue comes from. A bridge stands only while somebody listens: the engine makes nothing for nobody. */
export const BRIDGES: { readonly [N in RatchetEventName]: Bridge<N> } = {
  'job.enqueued': (engine, tell) => engine.on('enqueued', tell),
  'job.unsaved': (engine, tell) => engine.on('unsaved', tell),
  'job.started': (engine, tell) =>
    engine.on('claimed', (claimed) => tell({ ...executionOf(claimed), waitedMs: claimed.waitedMs })),
  'job.succeeded': (engine, tell) =>
    onOutcome(engine, 'succeeded', (settled) =>
      tell({ ...executionOf(settled), durationMs: durationOf(settled) }),
    ),
  'job.retrying': (engine, tell) =>
    onOutcome(engine, 'retried', (settled) =>
      tell({
        ...executionOf(settled),
        error: settled.error ?? '',
        failures: settled.failures,
        delayMs: settled.delayMs ?? 0,
        durationMs: durationOf(settled),
      }),
    ),
  'job.failed': (engine, tell) => {
    const leave = [
      onOutcome(engine, 'failed', (settled) =>
        tell({
          ...executionOf(settled),
          error: settled.error ?? '',
          failures: settled.failures,
          crashes: settled.crashes,
          durationMs: durationOf(settled),
        }),
      ),
      engine.on('buried', (buried) => tell({ ...buried })),
    ];
    return () => {
      for (const off of leave) off();
    };
  },
  'job.snoozed': (engine, tell) =>
    onOutcome(engine, 'snoozed', (settled) =>
      tell({
        ...executionOf(settled),
        delayMs: settled.delayMs ?? 0,
        durationMs: durationOf(settled),
      }),
    ),
  'job.released': (engine, tell) =>
    onOutcome(engine, 'released', (settled) =>
      tell({
        ...executionOf(settled),
        reason: releaseReason(settled),
      }),
    ),
  'job.lost': (engine, tell) =>
    engine.on('lost', (lost) => tell({ ...executionOf(lost), reason: lost.reason })),
  'job.canceled': (engine, tell) => engine.on('withdrawn', tell),
  'schedule.fired': (engine, tell) => engine.on('schedule_fired', tell),
  'schedule.missed': (engine, tell) => engine.on('schedule_missed', tell),
  'schedule.skipped': (engine, tell) => engine.on('schedule_skipped', tell),
};

function onOutcome(
  engine: EngineEvents,
  outcome: SettledExecution['outcome'],
  tell: (settled: EngineEventMap['settled']) => void,
): () => void {
  return engine.on('settled', (settled) => {
    if (settled.outcome === outcome) tell(settled);
  });
}

function executionOf({ jobId, name, lane, node, claimSeq, execution }: ExecutionEvent): ExecutionEvent {
  return { jobId, name, lane, node, claimSeq, execution };
}

/** Only what was given back unfinished has none. */
function durationOf({ durationMs = 0 }: SettledExecution): number {
  return durationMs;
}

function releaseReason({ begun, durationMs }: SettledExecution): JobReleasedEvent['reason'] {
  if (begun === false) return 'unbegun';
  return durationMs === undefined ? 'shutdown' : 'unrecordable';
}
