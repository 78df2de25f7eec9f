import { type ClassTransformOptions } from 'class-transformer';
import { type ValidatorOptions } from 'class-validator';
import { InvalidClassSchemaError } from '../index.js';

/** What class-validator takes, with its own defaults, and `transformOptions` for class-transformer. */
export interface ClassSchemaOptions extends Omit<ValidatorOptions, 'validationError'> {
  /**
   * Leaves out properties that have no decorator.
   * @defaultValue `false`
   */
  whitelist?: boolean;
  /**
   * With `whitelist`: refuses such properties, in place of leaving them out.
   * @defaultValue `false`
   */
  forbidNonWhitelisted?: boolean;
  /**
   * Refuses objects of which class-validator knows nothing, such as an item without `@Type`.
   * @defaultValue `true`
   */
  forbidUnknownValues?: boolean;
  /** Of `plainToInstance`. @defaultValue none */
  transformOptions?: ClassTransformOptions;
}

const KEYS: Readonly<Record<keyof ClassSchemaOptions, 'boolean' | 'array' | 'object'>> = {
  always: 'boolean',
  dismissDefaultMessages: 'boolean',
  enableDebugMessages: 'boolean',
  forbidNonWhitelisted: 'boolean',
  forbidUnknownValues: 'boolean',
  groups: 'array',
  skipMissingProperties: 'boolean',
  skipNullProperties: 'boolean',
  skipUndefinedProperties: 'boolean',
  stopAtFirstError: 'boolean',
  strictGroups: 'boolean',
  transformOptions: 'object',
  whitelist: 'boolean',
};

/** @throws InvalidClassSchemaError for what is no option: a misspelt `whitelist` would let everything pass. */
export function readClassSchemaOptions(given: unknown): ClassSchemaOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new InvalidClassSchemaError('options', given, `an object with ${Object.keys(KEYS).join(', ')}`);
  }
  const options = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  for (const [key, value] of Object.entries(options)) {
    const kind = Object.hasOwn(KEYS, key) ? KEYS[key as keyof ClassSchemaOptions] : undefined;
    if (kind === undefined)
      throw new InvalidClassSchemaError(key, value, `only ${Object.keys(KEYS).join(', ')}`);
    if (!isOf(kind, value)) throw new InvalidClassSchemaError(key, value, WORDS[kind]);
  }
  if (options['forbidNonWhitelisted'] === true && options['whitelist'] !== true) {
    throw new InvalidClassSchemaError('forbidNonWhitelisted', true, 'only together with whitelist: true');
  }
  return options;
}

const WORDS = { boolean: 'true or false', array: 'an array of texts', object: "class-transformer's options" };

function isOf(kind: keyof typeof WORDS, value: unknown): boolean {
  if (kind === 'boolean') return typeof value === 'boolean';
  if (kind === 'array') return Array.isArray(value) && value.every((one) => typeof one === 'string');
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
