import { type Type } from '@nestjs/common';
import {
  APP_GUARD,
  APP_INTERCEPTOR,
  type ContextId,
  type ExternalContextCreator,
  type ModulesContainer,
  type ModuleRef,
} from '@nestjs/core';
import { describeError } from '../errors/describe-error.js';
import { EnhancerUnreachableError } from '../errors/discovery-errors.js';
import { GuardRefusedError } from '../errors/execution-errors.js';
import { type JobContext } from '../jobs/job-context.js';
import {
  type CallMethod,
  executionScope,
  instanceIn,
  methodOf,
  type ProviderWrapper,
} from './handler-invoker.js';

/** Which of the app's enhancers stand before handlers. */
export interface EnhancerSettings {
  readonly interceptors: boolean;
  readonly guards: boolean;
}

/** What `context.getType()` says in a guard or an interceptor. */
const CONTEXT_TYPE = 'ratchet';

/** By Nest's own words: what `UseGuards` and `UseInterceptors` leave behind, and the token of the global ones. */
const KINDS = [
  {
    option: 'guards',
    subtype: 'guard',
    metadata: '__guards__',
    method: 'canActivate',
    token: APP_GUARD,
    decorator: '@UseGuards',
  },
  {
    option: 'interceptors',
    subtype: 'interceptor',
    metadata: '__interceptors__',
    method: 'intercept',
    token: APP_INTERCEPTOR,
    decorator: '@UseInterceptors',
  },
] as const;

type Call = (...parameters: unknown[]) => Promise<unknown>;

/** A handler as Nest knows it. */
interface Host {
  readonly wrapper: ProviderWrapper;
  readonly instance: object;
  readonly key: string | symbol;
  readonly owner: string;
}

/**
 * Puts the app's own guards and interceptors before handlers, by Nest's ExternalContextCreator: those of the method, of its
 * class, and the global ones. Never pipes (a payload has a schema) nor filters (one that catches everything would make a
 * result of an error).
 *
 * Nest leaves out an enhancer whose instance it does not find. A guard must not be lost that way: what it would not find is
 * refused when handlers are discovered.
 */
export class HandlerEnhancers {
  readonly #kinds: readonly (typeof KINDS)[number][];

  constructor(
    private readonly creator: ExternalContextCreator,
    private readonly modules: ModulesContainer,
    private readonly settings: EnhancerSettings,
  ) {
    this.#kinds = KINDS.filter(({ option }) => settings[option]);
  }

  /** @throws EnhancerUnreachableError */
  call(host: Host): CallMethod {
    this.#requireReachable(host);
    const isStatic = host.wrapper.isDependencyTreeStatic();
    const extra = [...this.#scopedGlobals(), ...(isStatic ? this.#transientOnes(host.wrapper) : [])];
    const call =
      isStatic && extra.length === 0 ? this.#shared(host) : this.#perExecution(host, isStatic, extra);
    return async (parameters, context) => {
      try {
        return await call(parameters, context);
      } catch (error) {
        throw isRefusal(error) ? new GuardRefusedError(host.owner, { cause: error }) : error;
      }
    };
  }

  /** Made at the first call, when the app has set all its global enhancers, and again when the method is another one. */
  #shared({ wrapper, instance, key }: Host): CallMethod {
    let made: { readonly method: unknown; readonly call: Call } | undefined;
    return async (parameters) => {
      const method = methodOf(instance, key);
      if (made?.method !== method) made = { method, call: this.#create(wrapper, instance, key) };
      return made.call(...parameters);
    };
  }

  /** @param extra - enhancers that do not come with the instance of the handler. */
  #perExecution(
    { wrapper, instance, key }: Host,
    isStatic: boolean,
    extra: readonly ProviderWrapper[],
  ): CallMethod {
    const scoped = isStatic ? extra : [wrapper, ...extra];
    return async (parameters, context: JobContext) => {
      const isDurable = scoped.every((one) => one.isDependencyTreeDurable());
      const { moduleRef, contextId } = executionScope(wrapper, isDurable, context);
      for (const one of extra) await load(one, wrapper, moduleRef, contextId);
      const own = isStatic ? instance : await instanceIn(wrapper, moduleRef, contextId);
      return this.#create(wrapper, own, key, contextId)(...parameters);
    };
  }

  #create(wrapper: ProviderWrapper, instance: object, key: string | symbol, contextId?: ContextId): Call {
    const { guards, interceptors } = this.settings;
    return this.creator.create(
      instance,
      methodOf(instance, key),
      String(key),
      undefined,
      undefined,
      contextId,
      wrapper.id,
      { guards, interceptors, filters: false },
      CONTEXT_TYPE,
    ) as Call;
  }

  /** Global enhancers of request or transient scope: Nest makes those for controllers only. */
  #scopedGlobals(): readonly ProviderWrapper[] {
    const tokens = this.#kinds.map(({ token }) => `${token} (`);
    return [...this.modules.values()].flatMap(({ injectables }) =>
      [...injectables.values()].filter(({ token }) =>
        tokens.some((start) => String(token).startsWith(start)),
      ),
    );
  }

  /** Of a handler that is made once. Not every Nest makes those for it. */
  #transientOnes(wrapper: ProviderWrapper): readonly ProviderWrapper[] {
    const subtypes = this.#kinds.map(({ subtype }) => subtype);
    const isOurs = ({ isTransient, subtype }: ProviderWrapper): boolean =>
      isTransient && subtypes.some((one) => one === subtype);
    return (wrapper.getEnhancersMetadata() as ProviderWrapper[] | undefined)?.filter(isOurs) ?? [];
  }

  #requireReachable({ wrapper, instance, key, owner }: Host): void {
    const { constructor } = instance;
    const { host } = wrapper;
    const isMade = host?.providers.get(constructor as Type) === wrapper;
    for (const { metadata, method, decorator } of this.#kinds) {
      for (const place of [constructor, methodOf(instance, key)]) {
        const enhancers = (Reflect.getMetadata(metadata, place) ?? []) as readonly unknown[];
        for (const enhancer of enhancers) {
          if (typeof enhancer !== 'function' || method in enhancer) continue;
          if (isMade && host.injectables.has(enhancer)) continue;
          throw new EnhancerUnreachableError(owner, decorator, enhancer.name, constructor.name);
        }
      }
    }
  }
}

/** As Nest would for a controller: each host has a transient enhancer of its own. */
async function load(
  enhancer: ProviderWrapper,
  host: ProviderWrapper,
  moduleRef: ModuleRef,
  contextId: ContextId,
): Promise<void> {
  const instance: object = await moduleRef.resolve(enhancer.token as never, contextId, { strict: false });
  if (!enhancer.isTransient) return;
  enhancer.setInstanceByInquirerId(contextId, host.id, {
    instance,
    isResolved: true,
    isPending: false,
    isConstructorCalled: true,
  });
}

/** What Nest throws for a guard that said no. */
function isRefusal(error: unknown): boolean {
  const { name, message } = describeError(error);
  return name === 'ForbiddenException' && message === 'Forbidden resource';
}
