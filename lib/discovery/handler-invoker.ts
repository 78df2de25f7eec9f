import { ContextIdFactory, type DiscoveryService, ModuleRef } from '@nestjs/core';
import { type RegisteredHandler } from '../jobs/handler-registry.js';
import { type JobContext } from '../jobs/job-context.js';

/** Nest's record of a provider: what it knows of scope, host module and instance. */
export type ProviderWrapper = ReturnType<DiscoveryService['getProviders']>[number];

type Invoke = RegisteredHandler['invoke'];

/**
 * Calls the method directly: no guard, pipe, interceptor or filter of the app comes between. Looks the method up at each
 * call, so that a spy put on the instance is called too.
 */
export function invokeOnInstance(instance: object, key: string | symbol): Invoke {
  return async (payload, context) => await call(instance, key, payload, context);
}

/**
 * Makes an instance for each execution, by Nest's public way. `REQUEST` is the job's context, or, in a durable tree,
 * what the app's `ContextIdStrategy` made of it. The host module's own ModuleRef is asked, since a token may mean
 * another class in another module.
 */
export function invokeOnOwnInstance(wrapper: ProviderWrapper, key: string | symbol): Invoke {
  return async (payload, context) => {
    const moduleRef = wrapper.host?.providers.get(ModuleRef)?.instance as ModuleRef;
    const contextId = ContextIdFactory.getByRequest(context);
    const { payload: durable } = contextId as { payload?: unknown };
    const request = wrapper.isDependencyTreeDurable() && durable !== undefined ? durable : context;
    moduleRef.registerRequestByContextId(request, contextId);
    const instance: object = await moduleRef.resolve(wrapper.token as never, contextId, { strict: true });
    return call(instance, key, payload, context);
  };
}

function call(instance: object, key: string | symbol, payload: unknown, context: JobContext): unknown {
  const method = (instance as Record<string | symbol, (payload: unknown, context: JobContext) => unknown>)[
    key
  ];
  if (method === undefined) throw new TypeError(`${String(key)} is no longer a method of its provider`);
  return method.call(instance, payload, context);
}
