/**
 * Mistakes that must not compile, one `@ts-expect-error` each, checked by types.spec.ts with `isolatedModules`. Nothing here
 * runs. A mistake that compiles after all makes its line an "unused '@ts-expect-error' directive".
 */
import {
  ClusterCoordinator,
  defineJob,
  type EnqueueManyItem,
  type EnqueueOptions,
  Job,
  type JobContext,
  type JobScheduler,
  NoCoordinator,
  type PayloadOf,
  RatchetModule,
  SystemClock,
} from 'nestjs-ratchet';
import { z } from 'zod';

declare const scheduler: JobScheduler;

class Money {
  constructor(readonly cents: number) {}
  plus(other: Money): Money {
    return new Money(this.cents + other.cents);
  }
}

const Send = defineJob<{ orderId: string }, { number: number }>('send');
const Ping = defineJob('ping');
const Resize = defineJob('resize', { schema: z.object({ width: z.string().transform(Number) }) });

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
// @ts-expect-error no schema
defineJob('x', { schema: { parse: (value: unknown) => value } });

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
// @ts-expect-error a wrong payload in enqueueMany
void scheduler.enqueueMany(Send, [{ payload: { orderId: '7' } }, { payload: { orderId: 7 } }]);
// @ts-expect-error a misspelt option in enqueueNamed
void scheduler.enqueueNamed('send', { orderId: '7' }, { prio: 'high' });
// @ts-expect-error the transaction of enqueueMany belongs to the whole call
const item: EnqueueManyItem<object> = { payload: {}, options: { transaction: undefined } };
// @ts-expect-error delay with runAt
const options: EnqueueOptions = { delay: 5, runAt: new Date(0) };

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

// ── Module ───────────────────────────────────────────────────────────────────────────────────────────────────────────
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
// @ts-expect-error a misspelt duration
RatchetModule.forRoot({ dataSource: 'default', pollInterval: '2 seconds' });
// @ts-expect-error two ways to the database
RatchetModule.forRoot({ dataSource: 'default', connection: 'postgres://localhost/app' });
// @ts-expect-error no way to the database
RatchetModule.forRoot({ concurrency: 5 });

export { item, options };
