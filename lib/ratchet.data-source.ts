import { Inject, type InjectionToken, Logger } from '@nestjs/common';
import { ModuleRef, type ModulesContainer } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { DataSourceNotFoundError, DataSourceUnfitError } from './errors/boot-errors.js';

const REMIND_MS = 15_000;
const logger = new Logger('RatchetModule');

/**
 * Finds the app's DataSource by name, token or as itself, without knowing @nestjs/typeorm, and waits until its factory
 * has made it, whichever of the two modules was imported first.
 *
 * @throws DataSourceNotFoundError, DataSourceUnfitError
 */
export async function findDataSource(
  asked: DataSource | InjectionToken,
  modules: ModulesContainer,
): Promise<DataSource> {
  const label = labelOf(asked);
  const found: unknown = isDataSource(asked) ? asked : await resolveToken(tokensOf(asked), label, modules);
  if (!isDataSource(found)) throw new DataSourceUnfitError(label, 'no TypeORM DataSource');
  if (!found.isInitialized) {
    throw new DataSourceUnfitError(
      label,
      'not initialized: await dataSource.initialize() before the app is made, or let TypeOrmModule do it',
    );
  }
  return found;
}

/** The tokens that @nestjs/typeorm 11 and 12 give a DataSource of that name; a token stands for itself. */
function tokensOf(asked: InjectionToken): InjectionToken[] {
  if (asked === 'default') return [DataSource];
  return typeof asked === 'string' ? [`${asked}DataSource`, asked] : [asked];
}

async function resolveToken(
  tokens: readonly InjectionToken[],
  label: string,
  modules: ModulesContainer,
): Promise<unknown> {
  for (const token of tokens) {
    // From where it is provided: that module need neither be global nor export it.
    const host = [...modules.values()].find((module) => module.providers.has(token));
    if (!host) continue;
    const reminder = setInterval(() => {
      logger.warn(`still waiting for dataSource ${label} of ${host.name}; does it depend on Ratchet itself?`);
    }, REMIND_MS);
    try {
      return await instanceOf(token, host.providers.get(ModuleRef)?.instance as ModuleRef);
    } finally {
      clearInterval(reminder);
    }
  }
  throw new DataSourceNotFoundError(label, tokens.map(labelOf), dataSourceTokens(modules));
}

/**
 * `ModuleRef.get` returns nothing for a provider whose factory still runs; what a class injects is waited for. So a class
 * is made that injects it.
 */
async function instanceOf(token: InjectionToken, moduleRef: ModuleRef): Promise<unknown> {
  class Link {
    constructor(readonly target: unknown) {}
  }
  Inject(token)(Link, undefined, 0);
  return (await moduleRef.create(Link)).target;
}

function isDataSource(value: unknown): value is DataSource {
  return typeof value === 'object' && value !== null && 'createQueryRunner' in value && 'options' in value;
}

/** What the app has, for the message: by the names that TypeOrmModule gives. */
function dataSourceTokens(modules: ModulesContainer): string[] {
  const tokens = [...modules.values()].flatMap((module) => [...module.providers.keys()] as InjectionToken[]);
  return [...new Set(tokens.map(labelOf).filter((name) => name.endsWith('DataSource')))];
}

function labelOf(asked: unknown): string {
  if (typeof asked === 'string') return `"${asked}"`.replace(/^"(\w*DataSource)"$/, '$1');
  if (typeof asked === 'function') return asked.name;
  return typeof asked === 'symbol' ? String(asked) : 'the instance given';
}
