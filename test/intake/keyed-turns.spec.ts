import { describe, expect, it } from '@jest/globals';
import { KeyedTurns } from '../../lib/intake/keyed-turns.js';

/** Work that is held until the test ends it, and tells when it began. */
function held(log: string[], name: string) {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  const work = async (): Promise<string> => {
    log.push(name);
    begin();
    await ended;
    return name;
  };
  return { work, end: () => end(), begun };
}

describe('KeyedTurns', () => {
  it('takes one at a time per key, in call order, and other keys beside it', async () => {
    const turns = new KeyedTurns();
    const log: string[] = [];
    const [a, b, c] = [held(log, 'a'), held(log, 'b'), held(log, 'c')];
    const first = turns.run(['k'], a.work);
    const second = turns.run(['k'], b.work);
    const other = turns.run(['x'], c.work);
    await c.begun;
    expect(log).toEqual(['a', 'c']);
    a.end();
    await expect(first).resolves.toBe('a');
    await b.begun;
    b.end();
    c.end();
    await expect(Promise.all([second, other])).resolves.toEqual(['b', 'c']);
  });

  it('waits for all of its keys, in whatever order they are named', async () => {
    const turns = new KeyedTurns();
    const log: string[] = [];
    const a = held(log, 'a');
    const first = turns.run(['k', 'l'], a.work);
    const rest = Promise.all([
      turns.run(['l', 'm'], async () => log.push('b')),
      turns.run(['m', 'k'], async () => log.push('c')),
    ]);
    await a.begun;
    a.end();
    await Promise.all([first, rest]);
    expect(log).toEqual(['a', 'b', 'c']);
  });

  it('goes on after a failure', async () => {
    const turns = new KeyedTurns();
    const failing = turns.run(['k'], () => Promise.reject(new Error('no')));
    const next = turns.run(['k'], () => Promise.resolve('yes'));
    await expect(failing).rejects.toThrow('no');
    await expect(next).resolves.toBe('yes');
  });

  it('runs a few keys at once', async () => {
    const turns = new KeyedTurns();
    const log: string[] = [];
    const works = Array.from({ length: 8 }, (_, index) => held(log, String(index)));
    const runs = works.map(({ work }, index) => turns.run([`k${index}`], work));
    await works[4]?.begun;
    expect(log).toHaveLength(5);
    for (const { end } of works) end();
    await Promise.all(runs);
    expect(log).toHaveLength(8);
  });

  it('lets nobody in beside the one whose turn it is', async () => {
    const turns = new KeyedTurns();
    let running = 0;
    let most = 0;
    let comers = 40;
    const work = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      await Promise.resolve();
      running -= 1;
    };
    const come = async (): Promise<void> => {
      // A new one at each microtask, also between the end of one work and the beginning of the next.
      while (comers-- > 0) {
        all.push(turns.run([`k${comers}`], work));
        await Promise.resolve();
      }
    };
    const all: Promise<void>[] = Array.from({ length: 10 }, (_, n) => turns.run([`first ${n}`], work));
    await come();
    await Promise.all(all);
    expect(most).toBe(5);
  });
});
