/** Right usages that must compile, checked by types.spec.ts with `isolatedModules`. Nothing here runs. */
import {
  type BulkOptions,
  type BulkOutcome,
  type BulkPreview,
  type ContextOf,
  defineJob,
  type EnqueueOptions,
  type InputOf,
  Job,
  JobContext,
  type JobDefinition,
  type JobFailedError,
  type JobFailure,
  type JobFilter,
  type MaybePreviewOptions,
  type JobHandle,
  type JobInfo,
  type JobPage,
  type JobScheduler,
  type JsonValue,
  NoCoordinator,
  OnJobFailure,
  payloadFor,
  type PayloadOf,
  type RatchetEventMap,
  type RatchetEventName,
  type RatchetEvents,
  RatchetModule,
  Recurring,
  type RecurringContext,
  type RecurringScheduleInfo,
  type RecurringScheduler,
  type ResultOf,
  resultType,
  type TransactionalJobContext,
} from 'nestjs-ratchet';
import { classSchema, type PlainOf } from 'nestjs-ratchet/class-validator';
import { Transform, Type } from 'class-transformer';
import { IsDate, IsInt, IsOptional, IsString, ValidateNested } from 'class-validator';
import { type EntityManager } from 'typeorm';
import { z } from 'zod';

declare const scheduler: JobScheduler;
declare const manager: EntityManager;
declare const condition: boolean;
const InvoiceSchema = z.object({ id: z.string() });

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
export const Sized = defineJob('sized', {
  schema: z.object({ width: z.string().transform(Number) }),
  result: resultType<{ bytes: number }>(),
});
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- as the parameter's default is written
export const ByParameters = defineJob<void, string, typeof InvoiceSchema>('parameters', {
  schema: InvoiceSchema,
});
export const PlainResult = defineJob('plain', { result: resultType<number>() });
export const Defaulted = defineJob('defaulted', { schema: z.object({ n: z.number() }).default({ n: 1 }) });

class Home {
  @IsString() city!: string;
  label(): string {
    return this.city;
  }
}
class CreateUser {
  @IsString() name!: string;
  @IsOptional() @IsInt() age?: number;
  @Type(() => Date) @IsDate() bornOn!: Date;
  @Type(() => Home) @ValidateNested({ each: true }) addresses!: Home[];
  greet(): string {
    return this.name;
  }
}
class Width {
  @Transform(({ value }) => Number(value)) @IsInt() px!: number;
}
export const Created = defineJob('user.created', {
  schema: classSchema(CreateUser),
  result: resultType<string>(),
});
export const Create = defineJob('user.create', { schema: classSchema(CreateUser), maxRetries: 5 });
export const Told = defineJob<{ name: string }, number>('user.told', {
  schema: classSchema<CreateUser, { name: string }>(CreateUser, { whitelist: true, groups: ['a'] }),
});
export const Widen = defineJob('widen', { schema: classSchema<Width, { px: string }>(Width) });

yes<Equal<PayloadOf<typeof Create>, CreateUser>>();
yes<Equal<InputOf<typeof Create>, PlainOf<CreateUser>>>();
yes<
  Equal<
    PlainOf<CreateUser>,
    { name: string; age?: number; bornOn: Date | string; addresses: { city: string }[] }
  >
>();
yes<Equal<InputOf<typeof Widen>, { px: string }>>();
yes<Equal<PayloadOf<typeof Widen>, Width>>();

yes<Equal<PayloadOf<typeof SendInvoice>, { orderId: string }>>();
yes<Equal<InputOf<typeof SendInvoice>, { orderId: string }>>();
yes<Equal<ResultOf<typeof SendInvoice>, { number: number }>>();
yes<Equal<InputOf<typeof Resize>['width'], string>>();
yes<Equal<PayloadOf<typeof Resize>['width'], number>>();
yes<Equal<PayloadOf<typeof Resize>['when'], Date | undefined>>();
yes<Equal<ResultOf<typeof Counted>, number>>();
yes<Equal<ResultOf<typeof Sized>, { bytes: number }>>();
yes<Equal<InputOf<typeof Sized>, { width: string }>>();
yes<Equal<PayloadOf<typeof Sized>, { width: number }>>();
yes<Equal<ResultOf<typeof Created>, string>>();
yes<Equal<PayloadOf<typeof Created>, CreateUser>>();
yes<Equal<ResultOf<typeof ByParameters>, string>>();
yes<Equal<ResultOf<typeof PlainResult>, number>>();
yes<Equal<ResultOf<typeof Defaulted>, unknown>>();

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
  await scheduler.enqueue(Create, { name: 'Ada', bornOn: '1815-12-10', addresses: [{ city: 'London' }] });
  await scheduler.enqueue(Create, { name: 'Ada', age: 36, bornOn: new Date(0), addresses: [] });
  await scheduler.enqueue(Create, new CreateUser());
  await scheduler.enqueue(Widen, { px: '7' });
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
  const result = await handle.result();
  yes<Equal<typeof result, { number: number }>>();
  await handle.result({ timeout: '30s', signal: new AbortController().signal });
  await handle.result({ timeout: undefined, signal: undefined });
  const typed = await scheduler.handle(SendInvoice, handle.id).result({ timeout: 5_000 });
  yes<Equal<typeof typed, { number: number }>>();
  const named = await scheduler.handle<string[]>(handle.id).result();
  yes<Equal<typeof named, string[]>>();
  const unknown = await scheduler.handle(handle.id).result();
  yes<Equal<typeof unknown, unknown>>();
  const { saved } = await scheduler.enqueue(
    SendInvoice,
    { orderId: '7' },
    { durability: 'buffered', priority: 'low', delay: '1m' },
  );
  await saved;
  await scheduler.enqueueMany(SendInvoice, [{ payload: { orderId: '7' } }], { durability: 'buffered' });
  await scheduler.enqueueMany(
    SendInvoice,
    ['1', '2'].map((orderId) => ({ payload: { orderId }, options: { businessKey: orderId } })),
    { priority: 'low', transaction: manager },
  );
  await scheduler.enqueueNamed('elsewhere', { any: 'thing' }, { lane: 'reports', delay: '1m' });
  const shared: EnqueueOptions = { idempotencyKey: 'k' };
  await scheduler.enqueue(Text, 'text', shared);
}

export async function control(): Promise<void> {
  const filter: JobFilter = {
    name: [SendInvoice, Ping, 'elsewhere', Resize],
    status: condition ? 'failed' : undefined,
    priority: ['high', 'critical'],
    tag: ['a', 'b'] as const,
    created: { from: new Date(0) },
    ended: { until: undefined },
  };
  const page = await scheduler.find(filter, { limit: 20, cursor: undefined });
  yes<Equal<typeof page, JobPage>>();
  await scheduler.find(undefined, { cursor: page.cursor });
  for await (const job of scheduler.findAll()) yes<Equal<typeof job, JobInfo>>();
  yes<Equal<Awaited<ReturnType<typeof scheduler.count>>, number>>();
  const one = await scheduler.cancel('id');
  yes<Equal<typeof one, boolean>>();
  const many = await scheduler.cancel(filter, { signal: new AbortController().signal });
  yes<Equal<typeof many, BulkOutcome>>();
  const preview = await scheduler.cancelByTag(['a', 'b'], { preview: true });
  yes<Equal<typeof preview, BulkPreview>>();
  const options: BulkOptions = {};
  yes<Equal<Awaited<ReturnType<typeof pauseAll>>, BulkOutcome>>();
  async function pauseAll() {
    return await scheduler.pause(filter, options);
  }
  await scheduler.resume('id');
  // Wrappers that know only at run time whether it is an id or a filter, and whether it is a preview.
  const either = (target: string | JobFilter) => scheduler.cancel(target);
  yes<Equal<Awaited<ReturnType<typeof either>>, boolean | BulkOutcome>>();
  const again = (target: string | JobFilter) => scheduler.redrive(target);
  yes<Equal<Awaited<ReturnType<typeof again>>, BulkOutcome | undefined>>();
  const later = (target: string | JobFilter) => scheduler.reschedule(target, { delay: '1h' });
  yes<Equal<Awaited<ReturnType<typeof later>>, boolean | BulkOutcome>>();
  const maybe = (preview: boolean) => scheduler.pause(filter, { preview });
  yes<Equal<Awaited<ReturnType<typeof maybe>>, BulkOutcome | BulkPreview>>();
  const optional = (options?: MaybePreviewOptions) => [
    scheduler.cancel(filter, options),
    scheduler.resume(filter, options),
    scheduler.redrive(filter, options),
    scheduler.cancelByTag('a', options),
    scheduler.reschedule(filter, { delay: 0 }, options),
  ];
  yes<Equal<Awaited<ReturnType<typeof optional>[number]>, BulkOutcome | BulkPreview>>();
  await scheduler.redrive({ status: 'failed' });
  const moved = await scheduler.reschedule('id', { delay: '5m' });
  yes<Equal<typeof moved, boolean>>();
  const all = await scheduler.reschedule(filter, { runAt: new Date(0) }, { preview: true });
  yes<Equal<typeof all, BulkPreview>>();
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

  @Job(Create)
  async create(user: CreateUser, ctx: ContextOf<typeof Create>): Promise<string> {
    return user.greet() + ctx.payload.greet();
  }

  /** Defined in place: nothing is known of the payload but what the method says. */
  @Job('report.build', { maxRetries: 1, timeout: '5m' })
  async build({ month }: { month: string }, ctx: JobContext): Promise<string> {
    return `${month} ${ctx.execution}`;
  }
}

export class TransactionalHandlers {
  @Job(SendInvoice, { transactional: true })
  async send(
    { orderId }: PayloadOf<typeof SendInvoice>,
    ctx: TransactionalJobContext,
  ): Promise<{ number: number }> {
    await ctx.manager.query('select 1');
    await ctx.enqueue(Ping);
    await scheduler.enqueue(SendInvoice, { orderId }, { transaction: ctx.manager });
    return { number: 1 };
  }

  @Job(SendInvoice, { transactional: { isolation: 'SERIALIZABLE' } })
  typed(payload: { orderId: string }, ctx: TransactionalJobContext<{ orderId: string }>): { number: number } {
    return { number: Number(payload.orderId) + Number(ctx.payload.orderId) };
  }

  /** It may ask for less than it is given. */
  @Job(SendInvoice, { transactional: true })
  plain(_payload: { orderId: string }, _ctx: JobContext): { number: number } {
    return { number: 1 };
  }

  @Job('report.close', { maxRetries: 1, transactional: true })
  async close({ month }: { month: string }, ctx: TransactionalJobContext): Promise<void> {
    await ctx.manager.query('select $1', [month]);
  }

  @Job(SendInvoice, {})
  none(): { number: number } {
    return { number: 1 };
  }
}

export class RecurringMethods {
  @Recurring('0 6 * * *', { id: 'digest', timeZone: 'Europe/Lisbon' })
  async digest(ctx: RecurringContext): Promise<Date | undefined> {
    yes<Equal<typeof ctx.scheduledFor, Date>>();
    yes<Equal<typeof ctx.missed, number>>();
    return ctx.previous ?? (await ctx.enqueue(Ping).then(() => ctx.scheduledFor));
  }

  @Recurring({ every: '15s' })
  none(): void {}

  @Recurring('@daily', {
    id: 'all',
    name: 'All of it',
    enabled: true,
    priority: 'low',
    lane: 'reports',
    maxRetries: 1,
    backoff: { type: 'none' },
    timeout: '1m',
    tags: ['a'],
    misfire: { catchUp: 3 },
    overlap: 'queue',
    jitter: '10s',
    scope: 'cluster',
  })
  plain(ctx: JobContext): string {
    return ctx.jobId;
  }

  /** Literals fit what the method asks for. */
  @Recurring('0 7 * * *', { id: 'short', payload: { kind: 'short', lists: ['a', 'b'] } })
  @Recurring('0 8 * * 1', { id: 'long', payload: { kind: 'long', lists: [], note: 'weekly' } })
  both(
    payload: { kind: 'short' | 'long'; lists: string[]; note?: string },
    ctx: RecurringContext<{ kind: 'short' | 'long' }>,
  ): string {
    return payload.kind + ctx.payload.kind + ctx.scheduleId;
  }

  @Recurring('0 9 * * *', { id: 'only', payload: { month: 1 } })
  onlyPayload({ month }: { month: number }): number {
    return month;
  }

  @Recurring('0 9 * * *', { id: 'wide', payload: [1, 2] as readonly number[] })
  wide(payload: readonly number[]): number {
    return payload.length;
  }

  @Job(SendInvoice)
  @Recurring('0 6 * * *', { id: 'mornings', payload: { orderId: '7' } })
  send({ orderId }: PayloadOf<typeof SendInvoice>, ctx: ContextOf<typeof SendInvoice>): { number: number } {
    return { number: Number(orderId) + ctx.execution };
  }

  @Recurring('0 6 * * *', { id: 'ping', payload: undefined })
  @Job(Ping)
  ping(_payload: PayloadOf<typeof Ping>, ctx: JobContext): string {
    return ctx.jobId;
  }

  @Recurring('0 6 * * *', { id: 'closing', payload: { orderId: '7' } })
  @Job(SendInvoice, { transactional: true })
  async closing(_payload: { orderId: string }, ctx: TransactionalJobContext): Promise<{ number: number }> {
    await ctx.manager.query('select 1');
    return { number: 1 };
  }

  @Job(Resize)
  @Recurring('0 6 * * *', { id: 'resize', payload: payloadFor(Resize, { url: 'x', width: '3' }) })
  resize({ width }: PayloadOf<typeof Resize>): number {
    return width;
  }

  @Job(Create)
  @Recurring('0 6 * * *', {
    id: 'create',
    payload: payloadFor(Create, { name: 'x', bornOn: '2000', addresses: [] }),
  })
  create(user: CreateUser): string {
    return user.greet();
  }

  @Recurring({ every: '1m' }, { id: 'cache', scope: 'node' })
  refresh(ctx: RecurringContext): number {
    return ctx.missed;
  }
}

export async function schedules(recurring: RecurringScheduler): Promise<void> {
  const made = await recurring.create({
    id: 'a',
    expression: '0 6 * * *',
    job: SendInvoice,
    payload: { orderId: '7' },
  });
  yes<Equal<typeof made, RecurringScheduleInfo>>();
  await recurring.create({ id: 'b', every: '15s', job: Ping });
  await recurring.create({
    id: 'c',
    expression: { every: '15s' },
    job: Ping,
    ifExists: 'keep',
    businessKey: 'c',
  });
  await recurring.create({
    id: 'd',
    every: 60_000,
    job: Resize,
    payload: { url: 'x', width: '3' },
    misfire: 'skip',
  });
  await recurring.create({ id: 'e', every: '1h', job: Defaulted });
  await recurring.update('a', {
    expression: '0 7 * * *',
    timeout: null,
    businessKey: null,
    overlap: 'queue',
  });
  await recurring.update('a', { job: SendInvoice, payload: { orderId: '8' } });
  await recurring.update('a', { job: Ping });
  await recurring.update('a', { payload: { orderId: '8' } });
  const { outcome, job } = await recurring.trigger('a', { payload: { orderId: '9' }, overlap: 'allow' });
  if (outcome === 'enqueued') await job?.result();
  for await (const { id, nextOccurrence } of recurring.listAll({ tag: 'x', origin: 'api' }))
    console.log(id, nextOccurrence?.getTime());
  const page = await recurring.list({ limit: 10 });
  await recurring.list({ limit: 10, after: page.after });
  const dates = await recurring.preview('0 6 * * *', { from: new Date(), timeZone: 'UTC', count: 3 });
  yes<Equal<typeof dates, Date[]>>();
}

export class FailureHandlers {
  @OnJobFailure(SendInvoice, { lane: 'alarms', maxRetries: 0, backoff: { type: 'none' }, timeout: '5s' })
  async all(
    payload: PayloadOf<typeof SendInvoice>,
    error: JobFailedError,
    ctx: JobContext<JobFailure>,
  ): Promise<string> {
    return `${payload.orderId} ${error.failures} ${ctx.payload.job.tags.join()}`;
  }

  /** It may ask for less than it is given. */
  @OnJobFailure(Resize)
  some({ width }: { width: number }, _error: Error, _ctx: JobContext): number {
    return width;
  }

  @OnJobFailure(Ping)
  none(): void {}
}

export function hear(events: RatchetEvents): (() => void)[] {
  const count = <N extends RatchetEventName>(
    name: N,
    by: (event: RatchetEventMap[N]) => string,
  ): (() => void) => events.on(name, (event) => void by(event));
  return [
    events.on('job.enqueued', async ({ jobId, dueAt }) => `${jobId} ${dueAt?.toISOString() ?? 'now'}`),
    events.on('job.failed', ({ name, error, crashes }) => `${name} ${error} ${crashes}`),
    count('job.lost', ({ reason }) => reason),
  ];
}

class Redis {}

export const modules = [
  RatchetModule.forRoot({ dataSource: 'default', concurrency: 20, lanes: { mail: { concurrency: 2 } } }),
  RatchetModule.forRoot({
    dataSource: 'default',
    worker: 'drain',
    buckets: { critical: 5, lowest: 0 },
    lanes: { mail: { concurrency: 4, reserved: 1, buckets: 2, bufferSize: 100 } },
  }),
  RatchetModule.forRoot({ connection: 'postgres://localhost/app', coordinator: NoCoordinator }),
  RatchetModule.forRootAsync({
    useFactory: () => ({ database: 'embedded' }),
    coordinator: { useFactory: (_redis: Redis) => new NoCoordinator(), inject: [Redis] },
    extraProviders: [Redis],
  }),
];
