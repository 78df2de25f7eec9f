import { describe, expect, it } from '@jest/globals';
import { BRIDGES } from '../../lib/observability/ratchet-event-bridge.js';
import { readPage, tableRows } from './markdown.js';

describe('docs/jobs/events.md', () => {
  it('lists exactly the events that there are', () => {
    const listed = tableRows(readPage('docs/jobs/events.md'))
      .map(([name = '']) => /^`(\w+\.\w+)`$/.exec(name)?.[1])
      .filter((name) => name !== undefined);
    expect(listed.toSorted()).toEqual(Object.keys(BRIDGES).toSorted());
  });
});
