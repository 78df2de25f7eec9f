import { type ClientConfig } from 'pg';
import { type BeatAnswer } from '../membership.js';
import { type Row, type Statement } from '../sql-client.js';
import { toStoreError } from './connections/classify-fault.js';
import { pinnedOptions } from './connections/pinned-settings.js';
import { type PostgresSession } from './postgres-session.js';
import { beat, decodeBeat } from './statements/heartbeat.js';

/** What a worker thread needs to beat on a connection of its own. */
export interface BeatProgram {
  readonly statement: Statement;
  readonly offsetMs: number;
  readonly applicationName: string;
  /** The settings for one connect, start-up options included, without functions in them. */
  settings(): Promise<object>;
  decode(row: Row | undefined): BeatAnswer;
  fault(error: { readonly message: string; readonly code?: string }): Error;
}

/** The program of a session's heartbeats; undefined when its connection settings have functions that only this thread can call. */
export async function beatProgram(session: PostgresSession): Promise<BeatProgram | undefined> {
  if (!isCloneable(withoutPassword(await session.engineConfig()))) return undefined;
  return {
    statement: session.statement(beat),
    offsetMs: session.offsetMs,
    applicationName: `${session.engine.applicationName}/heartbeat`.slice(0, 63),
    settings: async () => settingsOf(await session.engineConfig()),
    decode: decodeBeat,
    fault: toStoreError,
  };
}

async function settingsOf(config: ClientConfig): Promise<object> {
  const { password } = config;
  const options = pinnedOptions(config.options);
  // A password function is called here, for each connect.
  const told = typeof password === 'function' ? await password() : password;
  return { ...withoutPassword(config), options, ...(told === undefined ? {} : { password: told }) };
}

function withoutPassword(config: ClientConfig): ClientConfig {
  const rest = { ...config };
  delete rest.password;
  return rest;
}

function isCloneable(settings: object): boolean {
  try {
    structuredClone(settings);
    return true;
  } catch {
    return false;
  }
}
