import 'reflect-metadata';
import { type ModulesContainer } from '@nestjs/core';
import { CronStillLocalError } from '../errors/cron-adoption-errors.js';

/** By the words of @nestjs/schedule 6 and 12, which is not imported: an app without it needs none of it. */
const SCHEDULER_TYPE = 'SCHEDULER_TYPE';
const CRON = 1;
const SCHEDULE_CRON_OPTIONS = 'SCHEDULE_CRON_OPTIONS';
const SCHEDULE_MODULE_OPTIONS = 'SCHEDULE_MODULE_OPTIONS';

/** What `@Cron` was given, of a method that @nestjs/schedule would run by cron; `cronTime` is the expression. */
export function cronOptionsOf(method: unknown): object | undefined {
  if (typeof method !== 'function' || Reflect.getMetadata(SCHEDULER_TYPE, method) !== CRON) return undefined;
  const options: unknown = Reflect.getMetadata(SCHEDULE_CRON_OPTIONS, method);
  return typeof options === 'object' && options !== null ? options : undefined;
}

/**
 * Its timers have random names, so they cannot be taken over one by one: it is one or the other. Asked when all providers are
 * made, since the options may come of a factory.
 *
 * @throws CronStillLocalError
 */
export function refuseLocalCron(modules: ModulesContainer): void {
  for (const { providers } of modules.values()) {
    const options = providers.get(SCHEDULE_MODULE_OPTIONS)?.instance as
      { readonly cronJobs?: unknown } | null | undefined;
    if (options?.cronJobs) throw new CronStillLocalError();
  }
}
