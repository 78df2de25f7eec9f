import { oneNode } from './0001-one-node.js';
import { type Migration } from './migration.js';

/** Every step, in order. */
export const MIGRATIONS: readonly Migration[] = [oneNode];

/** The schema version that this code is written for. */
export const SCHEMA_VERSION = MIGRATIONS.length;
