import { beforeEach, describe, expect, it } from '@jest/globals';
import { type LaneOfHandler, ServedLanes } from '../../lib/intake/served-lanes.js';
import { FakeClock } from '../support/fake-clock.js';

describe('ServedLanes', () => {
  let clock: FakeClock;
  let lines: string[];
  let looks: number;
  let nodes: { lanes: string[] }[] | Error;
  let own: string[];
  let handlers: LaneOfHandler[];
  let lanes: ServedLanes;

  beforeEach(() => {
    clock = new FakeClock();
    lines = [];
    looks = 0;
    nodes = [{ lanes: ['default', 'mail'] }, { lanes: ['reports'] }];
    own = [];
    handlers = [];
    lanes = new ServedLanes({
      nodes: async () => {
        looks += 1;
        if (!Array.isArray(nodes)) throw nodes;
        return nodes;
      },
      own: () => own,
      handlers: () => handlers,
      clock,
      logger: { warn: (line) => void lines.push(line) },
    });
  });

  async function note(...names: string[]): Promise<void> {
    for (const name of names) lanes.note(name);
    await lanes.settled();
  }

  it('names the lane, the served ones, and the one that was probably meant', async () => {
    await note('mial');
    expect(lines).toEqual([
      'a job was enqueued into lane "mial", which no live node serves; did you mean "mail"? served are "default", "mail", "reports"; ' +
        'correct the name, or let a node serve the lane (option "lanes", or a handler whose definition names it)',
    ]);
    await note('elsewhere');
    expect(lines[1]).toContain('lane "elsewhere", which no live node serves; served are');
  });

  it('asks nobody while the lanes are known, whoever serves them', async () => {
    own = ['own'];
    await note('own');
    expect(looks).toBe(0);
    await note('mail', 'reports', 'default', 'own');
    expect(looks).toBe(1);
    for (let n = 0; n < 100; n += 1) await note('mail', 'reports');
    expect(looks).toBe(1);
    expect(lines).toEqual([]);
  });

  it('asks once for all that come while it asks', async () => {
    await note(...Array.from({ length: 500 }, () => 'mial'), 'raports');
    expect(looks).toBe(1);
    expect(lines).toHaveLength(2);
  });

  it('asks again after 30 s at the soonest, and tells of a lane once a minute', async () => {
    for (let second = 0; second < 120; second += 1) {
      await note('mial');
      clock.advance(1_000);
    }
    expect(looks).toBe(4);
    expect(lines).toHaveLength(2);
  });

  it('has nothing to say once a node serves the lane', async () => {
    await note('new');
    nodes = [{ lanes: ['new'] }];
    clock.advance(61_000);
    await note('new');
    await note('new');
    expect(lines).toHaveLength(1);
    expect(looks).toBe(2);
  });

  it('says nothing of spelling while no node lives, or the list cannot be had', async () => {
    nodes = [];
    await note('mial');
    clock.advance(31_000);
    nodes = new Error('the database is away');
    await note('mial');
    expect(looks).toBe(2);
    expect(lines).toEqual([]);
  });

  it('tells at boot which handlers of this process name such a lane', async () => {
    own = ['own'];
    handlers = [
      { lane: 'own', owner: 'A.a' },
      { lane: 'mial', owner: 'Mails.send' },
      { lane: 'mial', owner: 'Mails.sweep' },
      { lane: 'mail', owner: 'B.b' },
    ];
    lanes.onApplicationBootstrap();
    await lanes.settled();
    expect(lines).toEqual([
      expect.stringMatching(
        /^the definition of Mails\.send, Mails\.sweep names lane "mial", which no live node serves; did you mean "mail"\?/,
      ),
    ]);
  });

  it('asks nobody at boot when this process serves all that its handlers name', async () => {
    own = ['mail'];
    handlers = [{ lane: 'mail', owner: 'A.a' }];
    lanes.onApplicationBootstrap();
    await lanes.settled();
    expect(looks).toBe(0);
  });

  it('is stopped by no logger', async () => {
    lanes = new ServedLanes({
      nodes: () => Promise.resolve([{ lanes: [] }]),
      own: () => [],
      handlers: () => [],
      clock,
      logger: {
        warn: () => {
          throw new Error('no disk');
        },
      },
    });
    lanes.note('a');
    await lanes.settled();
    expect(() => lanes.note('b')).not.toThrow();
  });
});
