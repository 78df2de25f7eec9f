import { type DiscoveryService } from '@nestjs/core';
import { DuplicateHandlerError, TransientHandlerError } from '../errors/discovery-errors.js';
import { differingKey } from '../jobs/define-job.js';
import { type RegisteredHandler } from '../jobs/handler-registry.js';
import { type ProviderWrapper, invokeOnInstance, invokeOnOwnInstance } from './handler-invoker.js';
import { type JobMetadataAccessor, type MarkedMethod, classNameOf } from './job-metadata.accessor.js';

interface Found extends RegisteredHandler {
  /** The module that provides it, to tell two of one class apart. */
  readonly host: string;
  readonly instance: object;
  readonly key: string | symbol;
}

/**
 * Finds the handlers among the app's providers and controllers, once, when all of them are made. Whatever could only go
 * wrong later (two handlers for one job, a handler that no job could reach) goes wrong here, by name.
 */
export class JobExplorer {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly accessor: JobMetadataAccessor,
  ) {}

  explore(): ReadonlyMap<string, RegisteredHandler> {
    const handlers = new Map<string, Found>();
    for (const wrapper of [...this.discovery.getProviders(), ...this.discovery.getControllers()]) {
      for (const handler of this.#handlersOf(wrapper)) {
        const earlier = handlers.get(handler.definition.name);
        if (earlier && isSame(earlier, handler)) continue;
        if (earlier) throw duplicate(earlier, handler);
        handlers.set(handler.definition.name, handler);
      }
    }
    return handlers;
  }

  #handlersOf(wrapper: ProviderWrapper): Found[] {
    const instance = wrapper.instance as unknown;
    // An alias shows a provider that is found under its own token as well. Without an instance it is a scoped factory,
    // whose class nobody knows before it is called.
    if (wrapper.isAlias || typeof instance !== 'object' || instance === null) return [];
    const prototype = prototypeOf(instance);
    if (!prototype) return [];
    return this.accessor
      .markedMethods(prototype)
      .map((marked) => this.#handler(wrapper, instance, prototype, marked));
  }

  #handler(wrapper: ProviderWrapper, instance: object, prototype: object, marked: MarkedMethod): Found {
    const { definition } = marked.mark;
    const owner = `${classNameOf(prototype)}.${String(marked.key)}`;
    // Asked first: Nest calls a transient's tree static, and hands out a prototype whose constructor never ran.
    if (wrapper.isTransient) throw new TransientHandlerError(owner, definition.name);
    const invoke = wrapper.isDependencyTreeStatic()
      ? invokeOnInstance(instance, marked.key)
      : invokeOnOwnInstance(wrapper, marked.key);
    return {
      definition,
      owner,
      invoke,
      instance,
      key: marked.key,
      host: wrapper.host?.name ?? 'an unknown module',
    };
  }
}

/** One object under two tokens (a factory that hands on what it injects) is one handler. */
function isSame(one: Found, other: Found): boolean {
  return one.instance === other.instance && one.key === other.key;
}

function duplicate(earlier: Found, later: Found): DuplicateHandlerError {
  const differs = differingKey(earlier.definition, later.definition);
  const where = ({ owner, host }: Found): string =>
    earlier.owner === later.owner ? `${owner} (in ${host})` : owner;
  return new DuplicateHandlerError(
    later.definition.name,
    where(earlier),
    where(later),
    differs && `and the two definitions of that name differ in ${String(differs)}`,
  );
}

/** Values of the app may be anything: objects without a prototype, revoked proxies. */
function prototypeOf(value: object): object | null {
  try {
    return Reflect.getPrototypeOf(value);
  } catch {
    return null;
  }
}
