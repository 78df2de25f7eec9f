import { Logger } from '@nestjs/common';
import { type Clock, SystemClock } from './cluster/clock.js';
import { counted } from './errors/counted.js';
import { describeError } from './errors/describe-error.js';
import { type EngineEvents } from './observability/engine-events.js';
import { type RatchetEventName } from './observability/ratchet-event-map.js';
import { RatchetEvents } from './observability/ratchet-events.js';

/** Between two lines about one event: a listener that fails for every job must not bury the log. */
const LINE_EVERY_MS = 1_000;

/** The events of the application, whose listeners' errors are logged. */
export function ratchetEvents(engine: EngineEvents, clock: Clock = new SystemClock()): RatchetEvents {
  const logger = new Logger('RatchetEvents');
  const lines = new Map<RatchetEventName, { readonly atMs: number; left: number }>();
  return new RatchetEvents(engine, (event, error) => {
    const nowMs = clock.monotonicMs();
    const last = lines.get(event);
    if (last && nowMs - last.atMs < LINE_EVERY_MS) {
      last.left += 1;
      return;
    }
    lines.set(event, { atMs: nowMs, left: 0 });
    const { message, stack } = describeError(error);
    const left = last?.left ? ` (and ${counted(last.left, 'time')} since the line before)` : '';
    logger.error(`a listener of '${event}' failed, which changes nothing else${left}: ${message}`, stack);
  });
}
