import { type ContextId, ContextIdFactory, type DiscoveryService, ModuleRef } from '@nestjs/core';
import { type JobContext } from '../jobs/job-context.js';

/** Nest's record of a provider: what it knows of scope, host module and instance. */
export type ProviderWrapper = ReturnType<DiscoveryService['getProviders']>[number];

/** Calls a marked method with these parameters, the context among them. */
export type CallMethod = (parameters: readonly unknown[], context: JobContext) => Promise<unknown>;

type Method = (...parameters: unknown[]) => unknown;

/**
 * Calls the method directly: no guard, pipe, interceptor or filter of the app comes between. Looks the method up at each
 * call, so that a spy put on the instance is called too.
 */
export function callOnInstance(instance: object, key: string | symbol): CallMethod {
  return async (parameters) => await methodOf(instance, key).apply(instance, [...parameters]);
}

/** Makes an instance for each execution, and calls its method directly. */
export function callOnOwnInstance(wrapper: ProviderWrapper, key: string | symbol): CallMethod {
  return async (parameters, context) => {
    const isDurable = wrapper.isDependencyTreeDurable();
    const { moduleRef, contextId } = executionScope(wrapper, isDurable, context);
    const instance = await instanceIn(wrapper, moduleRef, contextId);
    return await methodOf(instance, key).apply(instance, [...parameters]);
  };
}

/**
 * Opens the scope of one execution for whatever is request-scoped, by Nest's public way. `REQUEST` is the job's context, or,
 * in a durable tree, what the app's `ContextIdStrategy` made of it.
 */
export function executionScope(
  { host }: ProviderWrapper,
  isDurable: boolean,
  context: JobContext,
): { readonly moduleRef: ModuleRef; readonly contextId: ContextId } {
  const moduleRef = host?.providers.get(ModuleRef)?.instance as ModuleRef;
  const contextId = ContextIdFactory.getByRequest(context);
  const { payload: durable } = contextId as { payload?: unknown };
  moduleRef.registerRequestByContextId(isDurable && durable !== undefined ? durable : context, contextId);
  return { moduleRef, contextId };
}

/** The host module's own ModuleRef is asked, since a token may mean another class in another module. */
export function instanceIn(
  wrapper: ProviderWrapper,
  moduleRef: ModuleRef,
  contextId: ContextId,
): Promise<object> {
  return moduleRef.resolve(wrapper.token as never, contextId, { strict: true });
}

/** As it is now: tests put spies on instances. */
export function methodOf(instance: object, key: string | symbol): Method {
  const method = (instance as Record<string | symbol, Method | undefined>)[key];
  if (method === undefined) throw new TypeError(`${String(key)} is no longer a method of its provider`);
  return method;
}
