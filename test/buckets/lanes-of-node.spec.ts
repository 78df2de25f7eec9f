import { describe, expect, it } from '@jest/globals';
import { type LaneSettings } from '../../lib/buckets/lane-settings.js';
import { disabledPriorities, lanesOfNode, doubtedLanes } from '../../lib/buckets/lanes-of-node.js';

const lane = (given: Partial<LaneSettings> = {}): LaneSettings => ({
  concurrency: 10,
  reserved: 0,
  buckets: 1,
  bufferSize: 0,
  ...given,
});

const settings = {
  concurrency: 10,
  lanes: new Map([
    ['mail', lane({ concurrency: 2, buckets: 2 })],
    ['video', lane({ buckets: { lowest: 0, low: 0, normal: 1, high: 1, critical: 2 } })],
  ]),
};

describe('the plan of a node', () => {
  it('has the default lane, the configured ones, and those that definitions name, each with its buckets', () => {
    expect(lanesOfNode(settings, ['default', 'report'])).toEqual([
      { lane: 'default', ...lane(), planned: [{ lane: 'default' }] },
      {
        lane: 'mail',
        ...lane({ concurrency: 2, buckets: 2 }),
        planned: [{ lane: 'mail' }, { lane: 'mail' }],
      },
      {
        lane: 'video',
        ...settings.lanes.get('video'),
        planned: [
          { lane: 'video', priority: 4 },
          { lane: 'video', priority: 4 },
          { lane: 'video', priority: 3 },
          { lane: 'video', priority: 2 },
        ],
      },
      { lane: 'report', ...lane(), planned: [{ lane: 'report' }] },
    ]);
  });

  it('is empty without handlers', () => {
    expect(lanesOfNode(settings, [])).toEqual([]);
  });

  it('says which priorities are switched off', () => {
    expect(disabledPriorities(lanesOfNode(settings, ['default']))).toEqual({ video: [0, 1] });
  });
});

describe('doubtedLanes', () => {
  it('doubts a configured lane that no handler names, with the nearest name', () => {
    const configured = {
      concurrency: 10,
      lanes: new Map(['default', 'mial', 'zzz', 'video'].map((name) => [name, lane()])),
    };
    expect(doubtedLanes(configured, ['mail', 'video'])).toEqual([
      'lanes.mial: no handler of this node names the lane "mial"; misspelt? did you mean "mail"? It is served all the same, for jobs whose ' +
        'enqueue names it',
      'lanes.zzz: no handler of this node names the lane "zzz"; misspelt? It is served all the same, for jobs whose enqueue names it',
    ]);
  });

  it('doubts the lane of a handler that is nearly one that is configured', () => {
    const configured = { concurrency: 10, lanes: new Map([['mail', lane()]]) };
    expect(doubtedLanes(configured, ['mail', 'mial', 'report', 'default'])).toEqual([
      'a handler of this node names the lane "mial", which the option lanes does not; misspelt? did you mean "mail"? It is served all ' +
        'the same, with what lanes have by default',
    ]);
  });

  it('says nothing on a node without handlers, which serves none', () => {
    expect(doubtedLanes(settings, [])).toEqual([]);
  });
});
