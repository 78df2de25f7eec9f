import { setTimeout as sleep } from 'node:timers/promises';
import { type BucketInfo, type JobScheduler, type RatchetBuckets } from 'nestjs-ratchet';
import { type LiveView } from './live-view.js';
import { type NodeProcess } from './node-process.js';

export interface StoryParts {
  readonly buckets: RatchetBuckets;
  readonly scheduler: JobScheduler;
  readonly view: LiveView;
  readonly nodes: readonly NodeProcess[];
}

/** No step takes longer, or something is wrong. */
export const PATIENCE_MS = 20_000;
const WATCH_MS = 1_200;

/** What happens to the nodes under load. Each step waits until the buckets show its effect, and says by numbers what that is. */
export class Story {
  readonly #parts: StoryParts;

  constructor(parts: StoryParts) {
    this.#parts = parts;
  }

  /** Returns how many executions the kill has cut off. */
  async tell(): Promise<number> {
    await sleep(WATCH_MS);
    await this.#pauseMail();
    await this.#drainByHand('node-2');
    return await this.#kill('node-3');
  }

  async #pauseMail(): Promise<void> {
    const { buckets, view } = this.#parts;
    view.say('pauseLane("mail")');
    await buckets.pauseLane('mail');
    await this.#until('no mail runs', (list) => sum(list, 'mail') === 0);
    const before = await this.#ended();
    await sleep(WATCH_MS);
    const after = await this.#ended();
    const [mail, reports] = [after.mail - before.mail, after.reports - before.reports];
    view.say(`  while it is paused: ${String(mail)} mails sent, ${String(reports)} reports built`);
    if (mail > 0 || reports === 0) throw new Error('a paused lane stands still, and no other');
    await buckets.resumeLane('mail');
    view.say('resumeLane("mail")');
    await this.#until('mail runs again', (list) => sum(list, 'mail') > 0);
  }

  async #drainByHand(nodeId: string): Promise<void> {
    const { buckets, view } = this.#parts;
    view.say(`drainNode("${nodeId}")`);
    const count = await buckets.drainNode(nodeId);
    await this.#until(`${nodeId} has no bucket`, (list) => of(list, nodeId).length === 0);
    view.say(`  ${nodeId} has finished what ran, and its ${String(count)} buckets are gone`);
    await sleep(WATCH_MS / 2);
    await buckets.undrainNode(nodeId);
    view.say(`undrainNode("${nodeId}")`);
    await this.#until(`${nodeId} runs jobs again`, (list) => of(list, nodeId).some(({ begun }) => begun > 0));
  }

  async #kill(nodeId: string): Promise<number> {
    const { view, nodes } = this.#parts;
    const victim = nodes.find((node) => node.nodeId === nodeId);
    // Not before it has something of both kinds to leave behind.
    await this.#until(`${nodeId} has buffered jobs`, (list) =>
      of(list, nodeId).some(({ buffered }) => buffered > 0),
    );
    victim?.kill();
    await victim?.ended;
    // What it had sent before is worked off by the database.
    await sleep(300);
    const left = of(await this.#parts.buckets.list(), nodeId);
    const [begun, buffered] = [total(left, 'begun'), total(left, 'buffered')];
    view.say(
      `kill -9 ${nodeId}: it leaves ${String(left.length)} buckets with ${String(begun)} jobs that had begun and ` +
        `${String(buffered)} that were only claimed`,
    );
    await this.#until(`${nodeId} is rescued`, (list) => of(list, nodeId).length === 0);
    view.say(
      `  the others gave them back: ${String(begun)} are charged with a crash, ${String(buffered)} are not`,
    );
    return begun;
  }

  /** Jobs that have ended so far, by lane. */
  async #ended(): Promise<{ mail: number; reports: number }> {
    const { scheduler } = this.#parts;
    const [mail = 0, reports = 0] = await Promise.all(
      ['mail', 'reports'].map((lane) => scheduler.count({ lane, status: 'succeeded' })),
    );
    return { mail, reports };
  }

  async #until(what: string, holds: (list: readonly BucketInfo[]) => boolean): Promise<void> {
    const lastMs = performance.now() + PATIENCE_MS;
    while (!holds(await this.#parts.buckets.list())) {
      if (performance.now() > lastMs) throw new Error(`waited in vain: ${what}`);
      await sleep(50);
    }
  }
}

function of(list: readonly BucketInfo[], nodeId: string): readonly BucketInfo[] {
  return list.filter(({ node }) => node.id === nodeId);
}

function total(list: readonly BucketInfo[], what: 'begun' | 'buffered'): number {
  return list.reduce((sum, bucket) => sum + bucket[what], 0);
}

/** Jobs of a lane that run. */
function sum(list: readonly BucketInfo[], lane: string): number {
  return total(
    list.filter((bucket) => bucket.lane === lane),
    'begun',
  );
}
