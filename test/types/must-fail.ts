/**
 * Mistakes that must not compile, one `@ts-expect-error` each, checked by types.spec.ts with `isolatedModules`. Nothing here
 * runs. A mistake that compiles after all makes its line an "unused '@ts-expect-error' directive".
 */
import { z } from 'zod';
import { defineJob } from '../../lib/jobs/define-job.js';
import {
  type EnqueueArgs,
  type EnqueueManyItem,
  type EnqueueOptions,
} from '../../lib/jobs/enqueue-options.js';
import { type JobContext } from '../../lib/jobs/job-context.js';
import { type JobDecorator, type JobDefinition, type PayloadOf } from '../../lib/jobs/job-definition.js';

declare function enqueue<In, Out, Result>(
  definition: JobDefinition<In, Out, Result>,
  ...args: EnqueueArgs<NoInfer<In>>
): void;
declare function Handle<In, Out, Result>(
  definition: JobDefinition<In, Out, Result>,
): JobDecorator<Out, Result>;

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
enqueue(Send);
// @ts-expect-error a property of the wrong type
enqueue(Send, { orderId: 7 });
// @ts-expect-error a property is missing
enqueue(Send, {});
// @ts-expect-error a misspelt property
enqueue(Send, { orderId: '7', orderid: '7' });
// @ts-expect-error a payload for a job that takes none
enqueue(Ping, { orderId: '7' });
// @ts-expect-error the schema's output in place of its input
enqueue(Resize, { width: 7 });
// @ts-expect-error delay with runAt
enqueue(Send, { orderId: '7' }, { delay: '1s', runAt: new Date(0) });
// @ts-expect-error a misspelt duration
enqueue(Send, { orderId: '7' }, { delay: '1 second' });
// @ts-expect-error a time as text
enqueue(Send, { orderId: '7' }, { runAt: '2030-01-01' });
// @ts-expect-error a misspelt option
enqueue(Send, { orderId: '7' }, { prio: 'high' });
// @ts-expect-error no such priority
enqueue(Send, { orderId: '7' }, { priority: 5 });
// @ts-expect-error no such conflict rule
enqueue(Send, { orderId: '7' }, { businessKey: 'k', onConflict: 'ignore' });
// @ts-expect-error an idempotency key without its key
enqueue(Send, { orderId: '7' }, { idempotencyKey: { expiresIn: '1h' } });
// @ts-expect-error no transaction
enqueue(Send, { orderId: '7' }, { transaction: {} });
// @ts-expect-error a name in place of the definition
enqueue('send', { orderId: '7' });
// @ts-expect-error the transaction of enqueueMany belongs to the whole call
const item: EnqueueManyItem<object> = { payload: {}, options: { transaction: undefined } };
// @ts-expect-error delay with runAt
const options: EnqueueOptions = { delay: 5, runAt: new Date(0) };

// ── Handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────────
export class Handlers {
  // @ts-expect-error another payload
  @Handle(Send)
  payload(_payload: { invoiceId: string }): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the handler asks for more than the payload has
  @Handle(Send)
  more(_payload: { orderId: string; count: number }): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error another result
  @Handle(Send)
  async result(_payload: PayloadOf<typeof Send>): Promise<{ id: string }> {
    return { id: '1' };
  }

  // @ts-expect-error no result
  @Handle(Send)
  async nothing(_payload: PayloadOf<typeof Send>): Promise<void> {}

  // @ts-expect-error a parameter too many
  @Handle(Send)
  extra(_payload: PayloadOf<typeof Send>, _ctx: JobContext, _more: string): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the context of another payload
  @Handle(Send)
  context(_payload: unknown, _ctx: JobContext<{ other: number }>): { number: number } {
    return { number: 1 };
  }

  // @ts-expect-error the schema's input in place of its output
  @Handle(Resize)
  input(_payload: { width: string }): void {}

  // @ts-expect-error on a property, not on a method
  @Handle(Ping)
  property = 1;

  @Handle(Ping)
  async inside(_payload: unknown, ctx: JobContext): Promise<void> {
    // @ts-expect-error a wrong payload for a child
    await ctx.enqueue(Send, { orderId: 7 });
    // @ts-expect-error a misspelt duration
    ctx.snooze('5 minutes');
  }
}

export { item, options };
