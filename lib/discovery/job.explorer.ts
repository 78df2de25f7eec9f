import { type DiscoveryService } from '@nestjs/core';
import { decoratorOf } from '../decorators/job-mark.js';
import { type RecurringMark, recurringDecoratorOf } from '../decorators/recurring-mark.js';
import {
  DuplicateHandlerError,
  JobDecoratorMisplacedError,
  TransientHandlerError,
} from '../errors/discovery-errors.js';
import { DuplicateScheduleError } from '../errors/recurring-scheduler-errors.js';
import { differingKey } from '../jobs/define-job.js';
import { type RegisteredHandler } from '../jobs/handler-registry.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { adoptedCron } from './adopted-cron.js';
import { failureInvoke } from './failure-invoke.js';
import { type FoundSchedule, foundSchedule, type ScheduleDefaults } from './found-schedule.js';
import { type HandlerEnhancers } from './handler-enhancers.js';
import {
  type CallMethod,
  type ProviderWrapper,
  callOnInstance,
  callOnOwnInstance,
} from './handler-invoker.js';
import { type JobMetadataAccessor, type MarkedMethod, classNameOf } from './job-metadata.accessor.js';

/** What the methods of an app are marked as. */
export interface Discovered {
  readonly handlers: ReadonlyMap<string, RegisteredHandler>;
  readonly schedules: readonly AnnotatedSchedule[];
  /**
   * Checks what cannot be checked at once.
   *
   * @throws RecurringPayloadError
   */
  readonly verify: () => Promise<void>;
}

/** Where something was found: a method of one object. */
interface Place {
  readonly owner: string;
  /** The module that provides it, to tell two of one class apart. */
  readonly host: string;
  readonly instance: object;
  readonly key: string | symbol;
}

type FoundHandler = RegisteredHandler & Place;
/** `by`: what the decorator left. One mark seen twice is one schedule. */
type Scheduled = FoundSchedule & Place & { readonly by: object };

/** What the decorators of one method are worth. */
interface RecurringMethod {
  readonly schedules: readonly Scheduled[];
  /** Without a `@Job` beside them: one for each. */
  readonly handlers: readonly FoundHandler[];
}

const NOTHING: RecurringMethod = { schedules: [], handlers: [] };
const DEFAULTS: ScheduleDefaults = { timeZone: 'UTC', payloadBytes: Infinity };

/**
 * Finds the handlers among the app's providers and controllers, once, when all of them are made. Whatever could only go
 * wrong later (two handlers for one job, a handler that no job could reach) goes wrong here, by name.
 */
export class JobExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly accessor: JobMetadataAccessor,
    /** Undefined: methods are called directly. */
    private readonly enhancers?: HandlerEnhancers,
    private readonly defaults = DEFAULTS,
  ) {}

  explore(): Discovered {
    const handlers = new Map<string, FoundHandler>();
    const schedules = new Map<string, Scheduled>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      for (const found of this.#methodsOf(wrapper)) {
        for (const scheduled of found.schedules) addSchedule(schedules, scheduled);
        for (const handler of found.handlers) addHandler(handlers, handler);
      }
    }
    const all = [...schedules.values()];
    return {
      handlers,
      schedules: all.map(({ schedule }) => schedule),
      verify: async () => {
        for (const { verify } of all) await verify();
      },
    };
  }

  #methodsOf(wrapper: ProviderWrapper): RecurringMethod[] {
    const instance = wrapper.instance as unknown;
    // An alias shows a provider that is found under its own token as well. Without an instance it is a scoped factory,
    // whose class nobody knows before it is called.
    if (wrapper.isAlias || typeof instance !== 'object' || instance === null) return [];
    const prototype = prototypeOf(instance);
    if (!prototype) return [];
    return this.accessor.markedMethods(prototype).map((marked) => {
      const owner = `${classNameOf(prototype)}.${String(marked.key)}`;
      const host = wrapper.host?.name ?? 'an unknown module';
      return this.#method(wrapper, { owner, host, instance, key: marked.key }, marked);
    });
  }

  #method(wrapper: ProviderWrapper, place: Place, { mark, recurring, cron }: MarkedMethod): RecurringMethod {
    const [first] = recurring?.declarations ?? [];
    const decorator = mark ? decoratorOf(mark) : first ? recurringDecoratorOf(first) : '@Cron';
    // Asked first: Nest calls a transient's tree static, and hands out a prototype whose constructor never ran.
    if (wrapper.isTransient) throw new TransientHandlerError(place.owner, decorator);
    const adopted = cron ? this.#adopted(wrapper, place, cron, recurring) : NOTHING;
    if (!mark && !recurring) return adopted;
    const call = this.#callOf(wrapper, place);
    const { schedules, handlers } = recurring ? this.#recurring(place, recurring, mark, call) : adopted;
    if (!mark) return { schedules, handlers };
    const { definition, failureOf, transactional } = mark;
    const handler: FoundHandler = {
      ...place,
      definition,
      ...(failureOf ? { failureOf } : {}),
      ...(transactional ? { transactional } : {}),
      invoke: failureOf
        ? failureInvoke(failureOf, definition, call)
        : (payload, context) => call([payload, context], context),
    };
    return { schedules, handlers: [...handlers, handler] };
  }

  #recurring(
    place: Place,
    { declarations }: RecurringMark,
    mark: MarkedMethod['mark'],
    call: CallMethod,
  ): RecurringMethod {
    if (mark?.failureOf) {
      const problem = `stands beside ${decoratorOf(mark)}, whose method is called with a failure`;
      throw new JobDecoratorMisplacedError(place.owner, '@Recurring', problem);
    }
    const on = { owner: place.owner, method: String(place.key), job: mark?.definition };
    const found = declarations.map((declaration) => ({
      ...place,
      ...foundSchedule(declaration, on, this.defaults),
      by: declaration,
    }));
    if (mark) return { schedules: found, handlers: [] };
    const handlers = found.map(({ definition, schedule: { spec, takesPayload } }): FoundHandler => ({
      ...place,
      definition,
      ...(spec.scope === 'node' ? { ofNode: true } : {}),
      invoke: (payload, context) => call(takesPayload ? [payload, context] : [context], context),
    }));
    return { schedules: found, handlers };
  }

  /** Called as @nestjs/schedule calls it: without parameters, and without anything of the app's in between. */
  #adopted(
    wrapper: ProviderWrapper,
    place: Place,
    cron: object,
    recurring: RecurringMark | undefined,
  ): RecurringMethod {
    if (recurring) {
      const problem = 'stands beside @Recurring, and adoptCron makes both of them schedules; remove one';
      throw new JobDecoratorMisplacedError(place.owner, '@Cron', problem);
    }
    const { owner, key } = place;
    const { declaration, zoneOfProcess } = adoptedCron(owner, cron);
    const found = foundSchedule(declaration, { owner, method: String(key), job: undefined }, this.defaults);
    const schedule = { ...found.schedule, adopted: { zoneOfProcess } };
    const call = directCall(wrapper, place);
    const invoke: RegisteredHandler['invoke'] = (_, context) => call([], context);
    return {
      schedules: [{ ...place, ...found, schedule, by: cron }],
      handlers: [{ ...place, definition: found.definition, invoke }],
    };
  }

  #callOf(wrapper: ProviderWrapper, place: Place): CallMethod {
    if (!this.enhancers) return directCall(wrapper, place);
    const { instance, key, owner } = place;
    return this.enhancers.call({ wrapper, instance, key, owner });
  }
}

function directCall(wrapper: ProviderWrapper, { instance, key }: Place): CallMethod {
  return wrapper.isDependencyTreeStatic() ? callOnInstance(instance, key) : callOnOwnInstance(wrapper, key);
}

function addSchedule(schedules: Map<string, Scheduled>, scheduled: Scheduled): void {
  const { id } = scheduled.schedule.spec;
  const earlier = schedules.get(id);
  if (earlier && isSame(earlier, scheduled) && earlier.by === scheduled.by) return;
  if (earlier) {
    const decorator = scheduled.schedule.adopted ? '@Cron' : '@Recurring';
    throw new DuplicateScheduleError(id, where(earlier, scheduled), where(scheduled, earlier), decorator);
  }
  schedules.set(id, scheduled);
}

function addHandler(handlers: Map<string, FoundHandler>, handler: FoundHandler): void {
  const earlier = handlers.get(handler.definition.name);
  if (earlier && isSame(earlier, handler)) return;
  if (earlier) throw duplicate(earlier, handler);
  handlers.set(handler.definition.name, handler);
}

/** One object under two tokens (a factory that hands on what it injects) is one handler. */
function isSame(one: Place, other: Place): boolean {
  return one.instance === other.instance && one.key === other.key;
}

function where({ owner, host }: Place, other: Place): string {
  return owner === other.owner ? `${owner} (in ${host})` : owner;
}

function duplicate(earlier: FoundHandler, later: FoundHandler): DuplicateHandlerError {
  const [one, other] = [earlier, later].map(({ failureOf, definition }) => failureOf ?? definition) as [
    JobDefinition,
    JobDefinition,
  ];
  const differs = differingKey(one, other);
  return new DuplicateHandlerError(one.name, where(earlier, later), where(later, earlier), {
    hint: differs && `and the two definitions of that name differ in ${String(differs)}`,
    ofFailure: later.failureOf !== undefined,
  });
}

/** Values of the app may be anything: objects without a prototype, revoked proxies. */
function prototypeOf(value: object): object | null {
  try {
    return Reflect.getPrototypeOf(value);
  } catch {
    return null;
  }
}
