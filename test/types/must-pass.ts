/** Right usages that must compile, checked by types.spec.ts with `isolatedModules`. Nothing here runs. */
import { z } from 'zod';
import { type ChildIntake } from '../../lib/jobs/child-intake.js';
import { defineJob } from '../../lib/jobs/define-job.js';
import { type EnqueueArgs, type EnqueueOptions, type JobHandle } from '../../lib/jobs/enqueue-options.js';
import { JobContext } from '../../lib/jobs/job-context.js';
import {
  type ContextOf,
  type InputOf,
  type JobDecorator,
  type JobDefinition,
  type PayloadOf,
  type ResultOf,
} from '../../lib/jobs/job-definition.js';
import { type JsonValue } from '../../lib/jobs/json.js';

declare function enqueue<In, Out, Result>(
  definition: JobDefinition<In, Out, Result>,
  ...args: EnqueueArgs<NoInfer<In>>
): Promise<JobHandle<Result>>;
declare function Handle<In, Out, Result>(
  definition: JobDefinition<In, Out, Result>,
): JobDecorator<Out, Result>;
declare const condition: boolean;

type Equal<A, B> = (<G>() => G extends A ? 1 : 2) extends <G>() => G extends B ? 1 : 2 ? true : false;
declare function yes<T extends true>(): T;

interface Address {
  readonly street: string;
  zip?: string;
}
interface Order {
  id: string;
  lines: readonly { sku: string; count: number }[];
  address?: Address;
  note: string | null | undefined;
  kind: 'gift' | 'plain';
  pair: [string, number];
  extra: Record<string, unknown>;
}
interface Tree {
  label: string;
  children: Tree[];
}
type Shape = { kind: 'circle'; radius: number } | { kind: 'square'; side: number };

export const SendInvoice = defineJob<{ orderId: string }, { number: number }>('invoice.send', {
  lane: 'mail',
  maxRetries: 5,
  backoff: { type: 'exponential', delay: '10s', maxDelay: '1h', jitter: 0.1 },
  timeout: '2m',
  priority: 'high',
  history: 'drop',
  version: 2,
  upcast: (stored, fromVersion) => (fromVersion === 1 ? { orderId: stored } : stored),
});
export const Ping = defineJob('ping');
export const Ordered = defineJob<Order>('order');
export const Grow = defineJob<Tree>('tree');
export const Draw = defineJob<Shape>('draw');
export const Anything = defineJob<JsonValue>('json');
export const Unknown = defineJob<unknown>('unknown');
export const Text = defineJob<string>('text');
export const Maybe = defineJob<{ limit?: number }>('maybe', { timeout: 1_500 });
/** Looks like an Error, is none. */
export const Contact = defineJob<{ name: string; message: string }>('contact');
export const Resize = defineJob('image.resize', {
  schema: z.object({
    url: z.string(),
    width: z.string().transform(Number),
    when: z.coerce.date().optional(),
  }),
  lane: 'images',
});
export const Counted = defineJob<{ n: number }, number>('counted', { schema: z.object({ n: z.number() }) });
export const Defaulted = defineJob('defaulted', { schema: z.object({ n: z.number() }).default({ n: 1 }) });

yes<Equal<PayloadOf<typeof SendInvoice>, { orderId: string }>>();
yes<Equal<InputOf<typeof SendInvoice>, { orderId: string }>>();
yes<Equal<ResultOf<typeof SendInvoice>, { number: number }>>();
yes<Equal<InputOf<typeof Resize>['width'], string>>();
yes<Equal<PayloadOf<typeof Resize>['width'], number>>();
yes<Equal<PayloadOf<typeof Resize>['when'], Date | undefined>>();
yes<Equal<ResultOf<typeof Counted>, number>>();

export async function enqueues(): Promise<void> {
  await enqueue(Ping);
  await enqueue(Ping, undefined, { delay: '10s' });
  await enqueue(Defaulted);
  await enqueue(Defaulted, { n: 2 });
  await enqueue(Unknown, { anything: 1 });
  await enqueue(Anything, [1, { a: null }]);
  await enqueue(Text, 'text', { delay: 5 });
  await enqueue(Maybe, {});
  await enqueue(Contact, { name: 'Ada', message: 'hello' });
  await enqueue(Grow, { label: 'root', children: [{ label: 'leaf', children: [] }] });
  await enqueue(Draw, { kind: 'circle', radius: 1 });
  await enqueue(Ordered, {
    id: '1',
    lines: [{ sku: 'a', count: 1 }],
    note: undefined,
    kind: 'gift',
    pair: ['a', 1],
    extra: { deep: { er: [1] } },
  });
  await enqueue(Resize, { url: 'u', width: '100' });
  const handle = await enqueue(
    SendInvoice,
    { orderId: '7' },
    {
      runAt: new Date(0),
      priority: condition ? 'critical' : undefined,
      lane: 'mail',
      tags: ['eu'],
      businessKey: 'invoice:7',
      onConflict: 'replace',
      idempotencyKey: { key: 'k', expiresIn: '2d' },
      maxRetries: 0,
      backoff: { type: 'none' },
      timeout: '1h',
      metadata: { trace: 'abc' },
      transaction: undefined,
    },
  );
  yes<Equal<typeof handle, JobHandle<{ number: number }>>>();
  const shared: EnqueueOptions = { idempotencyKey: 'k' };
  await enqueue(Text, 'text', shared);
}

/** Registries hold definitions of any kind. */
export const all: readonly JobDefinition[] = [SendInvoice, Ping, Resize, Draw, Unknown];

export class Handlers {
  @Handle(SendInvoice)
  async send({ orderId }: PayloadOf<typeof SendInvoice>, ctx: JobContext): Promise<{ number: number }> {
    ctx.progress({ half: true });
    ctx.logger.log(orderId);
    await ctx.enqueue(Ping);
    const child = await ctx.enqueue(SendInvoice, { orderId }, { delay: '1s', transaction: undefined });
    yes<Equal<typeof child, JobHandle<{ number: number }>>>();
    return { number: 1 };
  }

  @Handle(SendInvoice)
  sync(payload: { orderId: string }, ctx: ContextOf<typeof SendInvoice>): { number: number } {
    ctx.snooze('5m');
    return { number: Number(payload.orderId) + Number(ctx.payload.orderId) };
  }

  /** A handler may ask for less than it is given. */
  @Handle(SendInvoice)
  wider(payload: { orderId?: string }): { number: number } {
    return { number: Number(payload.orderId) };
  }

  @Handle(Ping)
  async none(): Promise<void> {}

  @Handle(Ping)
  async onlyContext(_payload: unknown, ctx: JobContext): Promise<string> {
    return ctx.jobId;
  }

  @Handle(Resize)
  async resize(payload: PayloadOf<typeof Resize>): Promise<number> {
    return payload.width;
  }
}

export type Ports = ChildIntake;
