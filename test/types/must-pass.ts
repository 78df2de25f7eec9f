/** Right usages that must compile, checked by types.spec.ts with `isolatedModules`. Nothing here runs. */
import {
  type ContextOf,
  defineJob,
  type EnqueueOptions,
  type InputOf,
  Job,
  JobContext,
  type JobDefinition,
  type JobHandle,
  type JobScheduler,
  type JsonValue,
  NoCoordinator,
  type PayloadOf,
  RatchetModule,
  type ResultOf,
} from 'nestjs-ratchet';
import { type EntityManager } from 'typeorm';
import { z } from 'zod';

declare const scheduler: JobScheduler;
declare const manager: EntityManager;
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
  await scheduler.enqueue(Ping);
  await scheduler.enqueue(Ping, undefined, { delay: '10s' });
  await scheduler.enqueue(Defaulted);
  await scheduler.enqueue(Defaulted, { n: 2 });
  await scheduler.enqueue(Unknown, { anything: 1 });
  await scheduler.enqueue(Anything, [1, { a: null }]);
  await scheduler.enqueue(Text, 'text', { delay: 5 });
  await scheduler.enqueue(Maybe, {});
  await scheduler.enqueue(Contact, { name: 'Ada', message: 'hello' });
  await scheduler.enqueue(Grow, { label: 'root', children: [{ label: 'leaf', children: [] }] });
  await scheduler.enqueue(Draw, { kind: 'circle', radius: 1 });
  await scheduler.enqueue(Ordered, {
    id: '1',
    lines: [{ sku: 'a', count: 1 }],
    note: undefined,
    kind: 'gift',
    pair: ['a', 1],
    extra: { deep: { er: [1] } },
  });
  await scheduler.enqueue(Resize, { url: 'u', width: '100' });
  const handle = await scheduler.enqueue(
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
      transaction: manager,
    },
  );
  yes<Equal<typeof handle, JobHandle<{ number: number }>>>();
  await scheduler.enqueueMany(
    SendInvoice,
    ['1', '2'].map((orderId) => ({ payload: { orderId }, options: { businessKey: orderId } })),
    { priority: 'low', transaction: manager },
  );
  await scheduler.enqueueNamed('elsewhere', { any: 'thing' }, { lane: 'reports', delay: '1m' });
  const shared: EnqueueOptions = { idempotencyKey: 'k' };
  await scheduler.enqueue(Text, 'text', shared);
}

/** Registries hold definitions of any kind. */
export const all: readonly JobDefinition[] = [SendInvoice, Ping, Resize, Draw, Unknown];

export class Handlers {
  @Job(SendInvoice)
  async send({ orderId }: PayloadOf<typeof SendInvoice>, ctx: JobContext): Promise<{ number: number }> {
    ctx.progress({ half: true });
    ctx.logger.log(orderId);
    await ctx.enqueue(Ping);
    const child = await ctx.enqueue(SendInvoice, { orderId }, { delay: '1s', transaction: undefined });
    yes<Equal<typeof child, JobHandle<{ number: number }>>>();
    return { number: 1 };
  }

  @Job(SendInvoice)
  sync(payload: { orderId: string }, ctx: ContextOf<typeof SendInvoice>): { number: number } {
    ctx.snooze('5m');
    return { number: Number(payload.orderId) + Number(ctx.payload.orderId) };
  }

  /** A handler may ask for less than it is given. */
  @Job(SendInvoice)
  wider(payload: { orderId?: string }): { number: number } {
    return { number: Number(payload.orderId) };
  }

  @Job(Ping)
  async none(): Promise<void> {}

  @Job(Ping)
  async onlyContext(_payload: unknown, ctx: JobContext): Promise<string> {
    return ctx.jobId;
  }

  @Job(Resize)
  async resize(payload: PayloadOf<typeof Resize>): Promise<number> {
    return payload.width;
  }

  /** Defined in place: nothing is known of the payload but what the method says. */
  @Job('report.build', { maxRetries: 1, timeout: '5m' })
  async build({ month }: { month: string }, ctx: JobContext): Promise<string> {
    return `${month} ${ctx.execution}`;
  }
}

class Redis {}

export const modules = [
  RatchetModule.forRoot({ dataSource: 'default', concurrency: 20, lanes: { mail: { concurrency: 2 } } }),
  RatchetModule.forRoot({ connection: 'postgres://localhost/app', coordinator: NoCoordinator }),
  RatchetModule.forRootAsync({
    useFactory: () => ({ database: 'embedded' }),
    coordinator: { useFactory: (_redis: Redis) => new NoCoordinator(), inject: [Redis] },
    extraProviders: [Redis],
  }),
];
