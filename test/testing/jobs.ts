import { Inject, Injectable, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import {
  defineJob,
  Job,
  JobContext,
  type JobFailedError,
  type JobFailure,
  OnJobFailure,
  type PayloadOf,
} from 'nestjs-ratchet';

export const Greet = defineJob<{ name: string }, { text: string }>('greet', {
  maxRetries: 2,
  backoff: { type: 'exponential', delay: '10s', jitter: 0 },
});
export const Urgent = defineJob<{ name: string }>('urgent', { priority: 'critical' });
export const Mail = defineJob<{ to: string }>('mail.send', { lane: 'mail' });
export const Slow = defineJob('slow', { timeout: '2m', maxRetries: 1, backoff: { type: 'none' } });
export const Family = defineJob<{ children: number }>('family');
export const Scoped = defineJob<undefined, { job: string; instance: number }>('scoped');
export const Forgotten = defineJob('forgotten', { history: 'drop' });
export const Orphan = defineJob('orphan', { lane: 'nowhere' });

/** What the handlers do beside returning, set by each test. */
export class Script {
  readonly log: string[] = [];
  /** Called by every handler of {@link Jobs}. */
  act: (ctx: JobContext) => unknown = () => undefined;
}

/** Told of the failures of {@link Greet}. */
@Injectable()
export class Failures {
  constructor(private readonly script: Script) {}

  @OnJobFailure(Greet, { lane: 'alarms' })
  greet({ name }: PayloadOf<typeof Greet>, error: JobFailedError, ctx: JobContext<JobFailure>): void {
    const { job } = ctx.payload;
    this.script.log.push(
      `${name}: ${error.executions} executions, ${job.tags.join()}, ${JSON.stringify(ctx.metadata)}, ` +
        `${ctx.lane}, ${ctx.priority}, ${error.error.split('\n', 1)[0]}`,
    );
  }
}

@Injectable()
export class Jobs {
  constructor(private readonly script: Script) {}

  @Job(Greet)
  async greet({ name }: PayloadOf<typeof Greet>, ctx: JobContext): Promise<{ text: string }> {
    this.script.log.push(`greet ${name} #${ctx.execution}`);
    await this.script.act(ctx);
    return { text: `hello ${name}` };
  }

  @Job(Urgent)
  async urgent({ name }: PayloadOf<typeof Urgent>, ctx: JobContext): Promise<void> {
    this.script.log.push(`urgent ${name}`);
    await this.script.act(ctx);
  }

  @Job(Mail)
  mail({ to }: PayloadOf<typeof Mail>): void {
    this.script.log.push(`mail ${to}`);
  }

  @Job(Slow)
  async slow(_: PayloadOf<typeof Slow>, ctx: JobContext): Promise<void> {
    this.script.log.push(`slow #${ctx.execution}`);
    await new Promise((_resolve, reject) => {
      ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error));
    });
  }

  @Job(Family)
  async family({ children }: PayloadOf<typeof Family>, ctx: JobContext): Promise<void> {
    this.script.log.push(`family ${children}`);
    if (children > 0) await ctx.enqueue(Family, { children: children - 1 }, { tags: ['child'] });
  }

  @Job(Forgotten)
  forgotten(): void {}
}

let instances = 0;

@Injectable({ scope: Scope.REQUEST })
export class ScopedJobs {
  readonly instance = (instances += 1);

  constructor(@Inject(REQUEST) private readonly job: JobContext) {}

  @Job(Scoped)
  run(): { job: string; instance: number } {
    return { job: this.job.jobId, instance: this.instance };
  }
}
