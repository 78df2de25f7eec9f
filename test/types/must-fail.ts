/**
 * Mistakes that must not compile, one `@ts-expect-error` each, checked by types.spec.ts with `isolatedModules`. Nothing here
 * runs. A mistake that compiles after all makes its line an "unused '@ts-expect-error' directive".
 */
import {
  BroadcastCoordinator,
  ClusterCoordinator,
  defineJob,
  type EnqueueManyItem,
  type EnqueueOptions,
  Job,
  type JobContext,
  type JobFailedError,
  type JobFilter,
  type JobHandle,
  type JobScheduler,
  NoCoordinator,
  OnJobFailure,
  payloadFor,
  type PayloadOf,
  type RatchetEvents,
  RatchetModule,
  Recurring,
  type RecurringContext,
  type RecurringScheduler,
  resultType,
  SystemClock,
  type TransactionalJobContext,
} from 'nestjs-ratchet';
import { classSchema } from 'nestjs-ratchet/class-validator';
import { IsInt, IsString } from 'class-validator';
import { z } from 'zod';

declare const scheduler: JobScheduler;
declare const events: RatchetEvents;

class Money {
  constructor(readonly cents: number) {}
  plus(other: Money): Money {
    return new Money(this.cents + other.cents);
  }
}

const Send = defineJob<{ orderId: string }, { number: number }>('send');
const Ping = defineJob('ping');
const Resize = defineJob('resize', { schema: z.object({ width: z.string().transform(Number) }) });

class CreateUser {
  @IsString() name!: string;
  @IsInt() age!: number;
  greet(): string {
    return this.name;
  }
}
const Create = defineJob('user.create', { schema: classSchema(CreateUser) });
const Sized = defineJob('sized', {
  schema: z.object({ id: z.string() }),
  result: resultType<{ bytes: number }>(),
});

// ── Payloads that JSON would change ──────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error a Date
defineJob<{ due: Date }>('x');
// @ts-expect-error a Date deep inside
defineJob<{ order: { lines: { due: Date }[] } }>('x');
// @ts-expect-error an optional Date
defineJob<{ due?: Date }>('x');
// @ts-expect-error a Date in a union
defineJob<{ due: string | Date }>('x');
// @ts-expect-error a Date as the payload itself
defineJob<Date>('x');
// @ts-expect-error a Map
defineJob<{ byId: Map<string, number> }>('x');
// @ts-expect-error a Set
defineJob<Set<string>>('x');
// @ts-expect-error a bigint
defineJob<{ cents: bigint }>('x');
// @ts-expect-error a function
defineJob<{ done: () => void }>('x');
// @ts-expect-error an instance of a class
defineJob<{ price: Money }>('x');
// @ts-expect-error a symbol
defineJob<{ tag: symbol }>('x');
// @ts-expect-error a Buffer
defineJob<{ file: Buffer }>('x');
// @ts-expect-error a URL
defineJob<{ link: URL }>('x');
// @ts-expect-error an Error
defineJob<{ cause: Error }>('x');
// @ts-expect-error a promise
defineJob<{ later: Promise<string> }>('x');
// @ts-expect-error undefined in an array
defineJob<{ list: (string | undefined)[] }>('x');
// @ts-expect-error a Date in a tuple
defineJob<{ pair: [string, Date] }>('x');

// ── Definitions ──────────────────────────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error a misspelt duration
defineJob('x', { timeout: '10 minutes' });
// @ts-expect-error a misspelt unit
defineJob('x', { backoff: { delay: '10sec' } });
// @ts-expect-error no such priority
defineJob('x', { priority: 'urgent' });
// @ts-expect-error a misspelt option
defineJob('x', { maxRetry: 3 });
// @ts-expect-error no such backoff
defineJob('x', { backoff: { type: 'linear' } });
// @ts-expect-error a misspelt option beside a schema
defineJob('x', { schema: z.object({}), lanes: 'mail' });
// @ts-expect-error the schema takes another payload than the one that is named
defineJob<{ id: string }>('x', { schema: z.object({ id: z.number() }) });
// @ts-expect-error a schema is no type of a result: results are not checked
defineJob('x', { schema: z.object({}), result: z.string() });
// @ts-expect-error no type of a result
defineJob('x', { result: 'string' });
// @ts-expect-error another result than the type parameter says
defineJob<undefined, number>('x', { result: resultType<string>() });
// @ts-expect-error no schema
defineJob('x', { schema: { parse: (value: unknown) => value } });

// @ts-expect-error no class
classSchema({ name: 'Ada' });
// @ts-expect-error a class whose constructor needs arguments
classSchema(Money);
// @ts-expect-error a misspelt option of the class schema
classSchema(CreateUser, { whitlist: true });
// @ts-expect-error an option that the class schema needs itself
classSchema(CreateUser, { validationError: { value: false } });

export class SizedHandlers {
  // @ts-expect-error the handler returns another result than the definition says
  @Job(Sized)
  sized(): string {
    return '';
  }
}
// @ts-expect-error the result has the type of the definition
export const wrongResult: Promise<string> = scheduler.handle(Sized, '').result();
// @ts-expect-error a handle is no id
void scheduler.cancel(scheduler.handle(Sized, ''));

// ── enqueue ──────────────────────────────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error the payload is missing
void scheduler.enqueue(Send);
// @ts-expect-error a property of the wrong type
void scheduler.enqueue(Send, { orderId: 7 });
// @ts-expect-error a property is missing
void scheduler.enqueue(Send, {});
// @ts-expect-error a misspelt property
void scheduler.enqueue(Send, { orderId: '7', orderid: '7' });
// @ts-expect-error a payload for a job that takes none
void scheduler.enqueue(Ping, { orderId: '7' });
// @ts-expect-error the schema's output in place of its input
void scheduler.enqueue(Resize, { width: 7 });
// @ts-expect-error a property of the class of the wrong type
void scheduler.enqueue(Create, { name: 'Ada', age: '36' });
// @ts-expect-error a property of the class is missing
void scheduler.enqueue(Create, { name: 'Ada' });
// @ts-expect-error a property that the class does not have
void scheduler.enqueue(Create, { name: 'Ada', age: 36, email: 'a@b.c' });
// @ts-expect-error a method is no part of the plain shape
void scheduler.enqueue(Create, { name: 'Ada', age: 36, greet: () => 'hi' });
// @ts-expect-error delay with runAt
void scheduler.enqueue(Send, { orderId: '7' }, { delay: '1s', runAt: new Date(0) });
// @ts-expect-error a misspelt duration
void scheduler.enqueue(Send, { orderId: '7' }, { delay: '1 second' });
// @ts-expect-error a time as text
void scheduler.enqueue(Send, { orderId: '7' }, { runAt: '2030-01-01' });
// @ts-expect-error a misspelt option
void scheduler.enqueue(Send, { orderId: '7' }, { prio: 'high' });
// @ts-expect-error no such priority
void scheduler.enqueue(Send, { orderId: '7' }, { priority: 5 });
// @ts-expect-error no such conflict rule
void scheduler.enqueue(Send, { orderId: '7' }, { businessKey: 'k', onConflict: 'ignore' });
// @ts-expect-error an idempotency key without its key
void scheduler.enqueue(Send, { orderId: '7' }, { idempotencyKey: { expiresIn: '1h' } });
// @ts-expect-error no transaction
void scheduler.enqueue(Send, { orderId: '7' }, { transaction: {} });
// @ts-expect-error a name in place of the definition
void scheduler.enqueue('send', { orderId: '7' });
// @ts-expect-error no such durability
void scheduler.enqueue(Send, { orderId: '7' }, { durability: 'lost' });
// @ts-expect-error a key is asked for its answer, which a buffered call does not wait for
void scheduler.enqueue(Send, { orderId: '7' }, { durability: 'buffered', businessKey: 'k' });
// @ts-expect-error the same of the other key
void scheduler.enqueue(Send, { orderId: '7' }, { durability: 'buffered', idempotencyKey: 'k' });
// @ts-expect-error durability belongs to the whole call of enqueueMany
void scheduler.enqueueMany(Send, [{ payload: { orderId: '7' }, options: { durability: 'buffered' } }]);
export const bufferedChild = (ctx: JobContext) =>
  // @ts-expect-error a child is saved while its parent's claim stands
  ctx.enqueue(Send, { orderId: '7' }, { durability: 'buffered' });
// @ts-expect-error a wrong payload in enqueueMany
void scheduler.enqueueMany(Send, [{ payload: { orderId: '7' } }, { payload: { orderId: 7 } }]);
// @ts-expect-error a misspelt option in enqueueNamed
void scheduler.enqueueNamed('send', { orderId: '7' }, { prio: 'high' });
// @ts-expect-error the transaction of enqueueMany belongs to the whole call
const item: EnqueueManyItem<object> = { payload: {}, options: { transaction: undefined } };
// @ts-expect-error delay with runAt
const options: EnqueueOptions = { delay: 5, runAt: new Date(0) };

// ── Results ──────────────────────────────────────────────────────────────────────────────────────────────────────────
declare const counted: JobHandle<{ count: number }>;
async function useResults(): Promise<void> {
  const result = await counted.result();
  // @ts-expect-error the handler returns an object
  const wrong: number = result;
  const unknown = await scheduler.handle('id').result();
  // @ts-expect-error the result that nobody knows is unknown
  const typed: number = unknown;
}
// @ts-expect-error a misspelt option
void counted.result({ timeOut: '5s' });
// @ts-expect-error no duration
void counted.result({ timeout: '5 seconds' });
// @ts-expect-error a controller in place of its signal
void counted.result({ signal: new AbortController() });
// @ts-expect-error a definition without the id
scheduler.handle(Ping);
// @ts-expect-error a name in place of the definition
scheduler.handle('ping', 'id');

// ── Finding and acting ───────────────────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error a misspelt condition
void scheduler.find({ stauts: 'failed' });
// @ts-expect-error no such status
void scheduler.count({ status: 'faild' });
// @ts-expect-error no such status in a list
void scheduler.find({ status: ['failed', 'done'] });
// @ts-expect-error a rank in place of a priority
void scheduler.find({ priority: 3 });
// @ts-expect-error a Date in place of a window
void scheduler.find({ created: new Date(0) });
// @ts-expect-error a time as text
void scheduler.find({ ended: { from: '2030-01-01' } });
// @ts-expect-error a class in place of the definition
void scheduler.find({ name: Money });
// @ts-expect-error a page number
void scheduler.find({}, { page: 2 });
// @ts-expect-error a misspelt condition of an action
void scheduler.cancel({ tags: 'a' });
// @ts-expect-error an action on every job
void scheduler.cancel();
// @ts-expect-error a preview of one id, which would be canceled
void scheduler.cancel('id', { preview: true });
// @ts-expect-error a preview of what may be one id, which would be refused at run time
const pauseEither = (target: string | JobFilter) => scheduler.pause(target, { preview: true });
// @ts-expect-error what may be a preview has no count of changes
export const maybe: Promise<{ changed: number }> = scheduler.pause(
  { tag: 'a' },
  { preview: Math.random() > 1 },
);
// @ts-expect-error a misspelt preview
void scheduler.redrive({ tag: 'a' }, { prevew: true });
// @ts-expect-error no due time
void scheduler.reschedule('id');
// @ts-expect-error two due times
void scheduler.reschedule('id', { delay: '1h', runAt: new Date(0) });
// @ts-expect-error a misspelt duration
void scheduler.reschedule({ tag: 'a' }, { delay: '1 hour' });
// @ts-expect-error a single redrive says nothing
export const redriven: Promise<boolean> = scheduler.redrive('id');
// @ts-expect-error a preview changes nothing
export const previewed: Promise<{ changed: number }> = scheduler.pause({ tag: 'a' }, { preview: true });

// ── Handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────────
export class Handlers {
  // @ts-expect-error another payload
  @Job(Send)
  payload(_payload: { invoiceId: string }): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the handler asks for more than the payload has
  @Job(Send)
  more(_payload: { orderId: string; count: number }): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error another result
  @Job(Send)
  async result(_payload: PayloadOf<typeof Send>): Promise<{ id: string }> {
    return { id: '1' };
  }

  // @ts-expect-error no result
  @Job(Send)
  async nothing(_payload: PayloadOf<typeof Send>): Promise<void> {}

  // @ts-expect-error a parameter too many
  @Job(Send)
  extra(_payload: PayloadOf<typeof Send>, _ctx: JobContext, _more: string): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the context of another payload
  @Job(Send)
  context(_payload: unknown, _ctx: JobContext<{ other: number }>): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the schema's input in place of its output
  @Job(Resize)
  input(_payload: { width: string }): void {}

  // @ts-expect-error another class than the schema's
  @Job(Create)
  user(_payload: { email: string }): void {}

  // @ts-expect-error on a property, not on a method
  @Job(Ping)
  property = 1;

  @Job(Ping)
  async inside(_payload: unknown, ctx: JobContext): Promise<void> {
    // @ts-expect-error a wrong payload for a child
    await ctx.enqueue(Send, { orderId: 7 });
    // @ts-expect-error a misspelt duration
    ctx.snooze('5 minutes');
  }
}

export class TransactionalHandlers {
  // @ts-expect-error a transactional context without the option
  @Job(Send)
  missing(_payload: unknown, _ctx: TransactionalJobContext): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the same, for a job defined in place
  @Job('transactional.missing', { maxRetries: 1 })
  inPlace(_payload: unknown, _ctx: TransactionalJobContext): void {}

  // @ts-expect-error no such isolation level
  @Job(Send, { transactional: { isolation: 'READ UNCOMMITTED' } })
  isolation(): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error what the definition says
  @Job(Send, { transactional: true, maxRetries: 3 })
  policy(): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error a transaction is a wish, not a question
  @Job(Send, { transactional: false })
  off(): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the context of another payload
  @Job(Send, { transactional: true })
  payload(_payload: unknown, _ctx: TransactionalJobContext<{ other: number }>): { number: number } {
    return { number: 1 };
  }
}

export class WrongRecurring {
  // @ts-expect-error a payload that the schedule does not give
  @Recurring('0 6 * * *', { id: 'x' })
  payload(_payload: { month: number }, _ctx: RecurringContext): void {}

  // @ts-expect-error the context where the payload is
  @Recurring('0 6 * * *', { id: 'x', payload: { month: 1 } })
  context(_ctx: RecurringContext): void {}

  // @ts-expect-error another payload
  @Recurring('0 6 * * *', { id: 'x', payload: { month: '1' } })
  other(_payload: { month: number }): void {}

  // @ts-expect-error a payload without what the method needs
  @Recurring('0 6 * * *', { id: 'x', payload: { month: 1 } })
  less(_payload: { month: number; year: number }): void {}

  // @ts-expect-error a third parameter
  @Recurring('0 6 * * *', { id: 'x', payload: { month: 1 } })
  more(_payload: { month: number }, _ctx: RecurringContext, _more: string): void {}

  // @ts-expect-error the context of another payload
  @Recurring('0 6 * * *', { id: 'x', payload: { month: 1 } })
  contextOfOther(_payload: { month: number }, _ctx: RecurringContext<{ year: number }>): void {}

  // @ts-expect-error no transaction without a @Job
  @Recurring('0 6 * * *', { id: 'x' })
  transactional(_ctx: TransactionalJobContext): void {}

  // @ts-expect-error transactional is for @Job to say
  @Recurring('0 6 * * *', { id: 'x', transactional: true })
  option(): void {}

  // @ts-expect-error a misspelt option
  @Recurring('0 6 * * *', { id: 'x', timezone: 'UTC' })
  option2(): void {}

  // @ts-expect-error a misspelt interval
  @Recurring({ every: '15 seconds' })
  interval(): void {}

  // @ts-expect-error no expression
  @Recurring({ id: 'x' })
  expression(): void {}

  // @ts-expect-error a misfire that there is not
  @Recurring('0 6 * * *', { id: 'x', misfire: 'all' })
  misfire(): void {}

  // @ts-expect-error what the schema makes, in place of what it takes
  @Recurring('0 6 * * *', { id: 'x', payload: payloadFor(Resize, { width: 3 }) })
  input(_payload: PayloadOf<typeof Resize>): void {}

  // @ts-expect-error on a property, not on a method
  @Recurring('0 6 * * *', { id: 'x' })
  property = 1;
}

declare const recurring: RecurringScheduler;
// @ts-expect-error a payload of another shape
void recurring.create({ id: 'x', expression: '0 6 * * *', job: Send, payload: { orderId: 7 } });
// @ts-expect-error no payload
void recurring.create({ id: 'x', expression: '0 6 * * *', job: Send });
// @ts-expect-error a payload that the definition does not take
void recurring.create({ id: 'x', expression: '0 6 * * *', job: Ping, payload: { orderId: '7' } });
// @ts-expect-error an expression and an interval
void recurring.create({ id: 'x', expression: '0 6 * * *', every: '15s', job: Ping });
// @ts-expect-error no times
void recurring.create({ id: 'x', job: Ping });
// @ts-expect-error no id
void recurring.create({ every: '15s', job: Ping });
// @ts-expect-error scope node is for annotations
void recurring.create({ id: 'x', every: '15s', job: Ping, scope: 'node' });
// @ts-expect-error another payload for a job that is named
void recurring.update('x', { job: Send, payload: { orderId: 7 } });
// @ts-expect-error the id stays
void recurring.update('x', { id: 'y' });
// @ts-expect-error an overlap that there is not
void recurring.trigger('x', { overlap: 'run' });

export class WrongFailures {
  // @ts-expect-error another payload
  @OnJobFailure(Send)
  payload(_payload: { orderId: number }): void {}

  // @ts-expect-error the error is no text
  @OnJobFailure(Send)
  error(_payload: PayloadOf<typeof Send>, _error: string): void {}

  // @ts-expect-error the context is that of the failure job
  @OnJobFailure(Send)
  context(_p: PayloadOf<typeof Send>, _e: JobFailedError, _ctx: JobContext<PayloadOf<typeof Send>>): void {}

  // @ts-expect-error the schema's input in place of its output
  @OnJobFailure(Resize)
  input(_payload: { width: string }): void {}

  // @ts-expect-error a name, not a definition
  @OnJobFailure('invoice.send')
  name(): void {}

  // @ts-expect-error what the definition says, not the failure handler
  @OnJobFailure(Send, { priority: 'high' })
  policy(): void {}

  // @ts-expect-error on a property, not on a method
  @OnJobFailure(Ping)
  property = 1;
}

// ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error an event that there is not
events.on('job.succeded', () => {});
// @ts-expect-error what another event carries
events.on('job.succeeded', ({ error }) => console.log(error));
// @ts-expect-error not certain: the job that was replaced has no name here
events.on('job.canceled', ({ name }) => console.log(name.length));
// @ts-expect-error no listener
events.on('job.failed');
// @ts-expect-error a misspelt bound
RatchetModule.forRoot({ dataSource: 'default', retention: { historyBytes: '20GB' } });

// ── Module ───────────────────────────────────────────────────────────────────────────────────────────────────────────
// @ts-expect-error a coordinator that does not say how it sends
export class Mute extends BroadcastCoordinator {}
// @ts-expect-error a coordinator by a word
RatchetModule.forRoot({ dataSource: 'default', coordinator: 'none' });
// @ts-expect-error a coordinator of the wrong class
RatchetModule.forRoot({ dataSource: 'default', coordinator: SystemClock });
// @ts-expect-error a factory of the wrong class
RatchetModule.forRoot({ dataSource: 'default', coordinator: { useFactory: () => new SystemClock() } });
// @ts-expect-error the port itself, which is abstract
RatchetModule.forRoot({ dataSource: 'default', coordinator: ClusterCoordinator });
// @ts-expect-error a clock of the wrong class, beside options that come later
RatchetModule.forRootAsync({ useFactory: () => ({ dataSource: 'default' }), clock: NoCoordinator });
// @ts-expect-error a misspelt option
RatchetModule.forRoot({ dataSource: 'default', concurency: 5 });
// @ts-expect-error a priority that is none
RatchetModule.forRoot({ dataSource: 'default', lanes: { mail: { buckets: { urgent: 1 } } } });
// @ts-expect-error a misspelt mode
RatchetModule.forRoot({ dataSource: 'default', worker: 'drains' });
// @ts-expect-error a misspelt duration
RatchetModule.forRoot({ dataSource: 'default', poll: { min: '2 seconds' } });
// @ts-expect-error a misspelt enhancer
RatchetModule.forRoot({ dataSource: 'default', enhancers: { filters: true } });
// @ts-expect-error two ways to the database
RatchetModule.forRoot({ dataSource: 'default', connection: 'postgres://localhost/app' });
// @ts-expect-error no way to the database
RatchetModule.forRoot({ concurrency: 5 });

export { item, options };
