import { describe, expect, it } from '@jest/globals';
import { DebugPoints } from '../../lib/observability/debug-points.js';
import { EngineEvents } from '../../lib/observability/engine-events.js';

const idle = { bucket: 'b', lane: 'default' };

describe('EngineEvents', () => {
  it('a listener that throws stops neither the others nor the engine, and is told', () => {
    const told: unknown[] = [];
    const events = new EngineEvents((event, error) => told.push([event, error]));
    const heard: unknown[] = [];
    events.on('idle', () => {
      throw 'boom';
    });
    events.on('idle', (payload) => heard.push(payload));
    events.emit('idle', idle);
    expect(heard).toEqual([idle]);
    expect(told).toEqual([['idle', 'boom']]);
  });

  it('awaits the next one that is accepted, and forgets the listener', async () => {
    const events = new EngineEvents();
    const next = events.next('idle', ({ lane }) => lane === 'mail');
    events.emit('idle', idle);
    events.emit('idle', { ...idle, lane: 'mail' });
    expect(await next).toEqual({ ...idle, lane: 'mail' });
    expect(events.heard('idle')).toBe(false);
  });
});

describe('DebugPoints', () => {
  it('does nothing until a test holds a point', async () => {
    const debug = new DebugPoints();
    expect(debug.reach('exchange.sending', 'b')).toBeUndefined();
    const visited: string[] = [];
    const off = debug.at('exchange.sending', async (detail) => void visited.push(detail));
    await debug.reach('exchange.sending', 'b');
    off();
    expect(debug.reach('exchange.sending', 'b')).toBeUndefined();
    expect(visited).toEqual(['b']);
  });
});
