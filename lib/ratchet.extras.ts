import { type ModuleMetadata } from '@nestjs/common';
import { type RatchetPorts } from './ratchet.ports.js';

/** Token of the options as they were given. */
export const RATCHET_OPTIONS = Symbol('ratchet: options');

/** What must be known when the module graph is built, so `forRootAsync` takes it beside its factory and not from it. */
export interface RatchetExtras extends RatchetPorts {
  /** Whether every module can inject `JobScheduler` without importing anything. @defaultValue `true` */
  isGlobal?: boolean | undefined;
  /** Modules that offer what ports inject. */
  imports?: NonNullable<ModuleMetadata['imports']> | undefined;
  /** Providers that ports inject. */
  extraProviders?: NonNullable<ModuleMetadata['providers']> | undefined;
}
