import { describe, expect, it } from '@jest/globals';
import { TimeZone } from '../../../lib/recurring/time/time-zone.js';
import { wallClock } from './slow-oracle.js';

const second = (text: string) => Date.parse(text) / 1_000;

describe('TimeZone', () => {
  it.each([
    // Two changes within a week.
    ['America/Noronha', '2000-09-01', '2000-12-01'],
    ['America/Argentina/Tucuman', '2004-05-01', '2004-08-01'],
    ['Africa/Casablanca', '2026-01-01', '2026-06-01'],
    ['Pacific/Apia', '2011-11-01', '2012-05-01'],
    ['Asia/Kathmandu', '1985-12-01', '1986-02-01'],
    ['Africa/Monrovia', '1971-12-01', '1972-02-01'],
    ['Europe/Lisbon', '2199-01-01', '2200-01-01'],
    ['UTC', '2026-01-01', '2026-02-01'],
  ])('knows the offset of each half hour of %s from %s to %s', (name, from, until) => {
    const zone = TimeZone.named(name);
    const [start, end] = [second(from), second(until)];
    for (let at = start; at < end; at += 1_800) {
      const offset = wallClock(name, at * 1_000) / 1_000 - at;
      if (zone.spanAt(at).offset !== offset)
        throw new Error(`${new Date(at * 1_000).toISOString()}: ${offset}`);
    }
  });

  it('covers time without holes, and knows each change from both sides', () => {
    const zone = TimeZone.named('America/New_York');
    let span = zone.spanAt(second('2025-01-01'));
    const changes: [string, number][] = [];
    while (span.end < second('2027-01-01')) {
      const next = zone.spanAt(span.end);
      expect([next.start, next.before]).toEqual([span.end, span.offset]);
      expect(zone.spanAt(next.start - 1)).toEqual(span);
      if (next.offset !== span.offset) {
        changes.push([new Date(next.start * 1_000).toISOString(), next.offset - span.offset]);
      }
      span = next;
    }
    expect(changes).toEqual([
      ['2025-03-09T07:00:00.000Z', 3_600],
      ['2025-11-02T06:00:00.000Z', -3_600],
      ['2026-03-08T07:00:00.000Z', 3_600],
      ['2026-11-01T06:00:00.000Z', -3_600],
    ]);
  });

  it('says what the clocks have reached, and when they first reach a wall time', () => {
    const zone = TimeZone.named('America/New_York');
    const reached = (text: string) => new Date(zone.reached(second(text)) * 1_000).toISOString();
    const first = (text: string) => new Date(zone.firstReaching(second(text)) * 1_000).toISOString();
    expect(reached('2026-11-01T05:30:00Z')).toBe('2026-11-01T01:30:00.000Z');
    expect(reached('2026-11-01T06:30:00Z')).toBe('2026-11-01T01:59:59.000Z');
    expect(reached('2026-11-01T07:00:00Z')).toBe('2026-11-01T02:00:00.000Z');
    expect(first('2026-11-01T01:30:00Z')).toBe('2026-11-01T05:30:00.000Z');
    expect(first('2026-11-01T02:00:00Z')).toBe('2026-11-01T07:00:00.000Z');
    expect(first('2026-03-08T02:30:00Z')).toBe('2026-03-08T07:00:00.000Z');
    expect(first('2026-03-08T03:00:00Z')).toBe('2026-03-08T07:00:00.000Z');
    expect(first('2026-03-08T03:00:01Z')).toBe('2026-03-08T07:00:01.000Z');
  });
});
