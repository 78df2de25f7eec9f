/**
 * Classes that class-validator checks, as schemas of payloads. Needs the optional peers `class-validator` and
 * `class-transformer`.
 *
 * @packageDocumentation
 */
export { type ClassSchema, classSchema } from './class-schema.js';
export { type ClassSchemaOptions } from './class-schema-options.js';
export { type PlainOf } from './plain-of.js';
