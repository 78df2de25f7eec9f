import { describe, expect, it } from '@jest/globals';
import { Suspects } from '../../lib/engine/suspects.js';

describe('Suspects', () => {
  it('lets one exchange at a time ask, and none while one runs', () => {
    let freed = 0;
    const suspects = new Suspects(() => (freed += 1));
    expect(suspects.ask()).toBe(true);
    expect(suspects.ask()).toBe(false);
    suspects.began();
    suspects.asked();
    expect(suspects.ask()).toBe(false);
    suspects.began(); // An adopted claim may overfill.
    suspects.ended();
    expect(freed).toBe(0);
    suspects.ended();
    expect(freed).toBe(1);
    expect(suspects.ask()).toBe(true);
  });
});
