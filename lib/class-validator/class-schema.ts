import { type StandardSchemaV1 } from '@standard-schema/spec';
import { InvalidClassSchemaError } from '../index.js';
import { type ClassSchemaOptions, readClassSchemaOptions } from './class-schema-options.js';
import { issuesOf } from './issues.js';
import { loadPeers, type Peers } from './peers.js';
import { type PlainOf } from './plain-of.js';

/** What {@link classSchema} returns: takes the plain shape of a class, gives an instance. */
export type ClassSchema<Input, Dto> = StandardSchemaV1<Input, Dto>;

/**
 * A class with class-validator's decorators as the schema of a payload. `enqueue` takes the plain shape of the class and
 * stores it as it was given; the handler receives an instance, methods and all. Validators may be asynchronous.
 *
 * A `Date` needs `@Type(() => Date)`, an object of another class `@Type(() => Other)` and `@ValidateNested()`. What no
 * decorator names passes unchecked, unless `whitelist` says otherwise.
 *
 * @typeParam Dto - the class.
 * @typeParam Input - what `enqueue` takes, where it differs from the plain shape: a `@Transform` that makes a number of a
 *   text, a property with a default, a getter.
 * @param dto - a class with at least one validation decorator, whose constructor needs no arguments.
 * @param options - class-validator's own.
 * @throws ClassSchemaPackageMissingError when `class-validator` or `class-transformer` is not installed.
 * @throws InvalidClassSchemaError when this is no such class, or an option is none.
 *
 * @example
 * class CreateUser {
 *   \@IsEmail() email!: string;
 *   \@Type(() => Date) \@IsDate() bornOn!: Date;
 * }
 * export const CreateUserJob = defineJob('user.create', { schema: classSchema(CreateUser, { whitelist: true }) });
 */
export function classSchema<Dto extends object, Input = PlainOf<Dto>>(
  dto: new () => Dto,
  options: ClassSchemaOptions = {},
): ClassSchema<NoInfer<Input>, Dto> {
  const settings = readClassSchemaOptions(options);
  const peers = loadPeers();
  requireDecorated(dto, peers);
  const { transformOptions, ...validatorOptions } = settings;

  async function validate(value: unknown): Promise<StandardSchemaV1.Result<Dto>> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return { issues: [{ message: `must be an object, the plain shape of ${dto.name}`, path: [] }] };
    }
    const instance = peers.transformer.plainToInstance(dto, value, transformOptions);
    const errors = await peers.validator.validate(instance, {
      forbidUnknownValues: true,
      ...validatorOptions,
      // The path needs to know what is an array.
      validationError: { target: false, value: true },
    });
    return errors.length === 0 ? { value: instance } : { issues: issuesOf(errors, instance) };
  }

  return Object.freeze({
    '~standard': Object.freeze({ version: 1 as const, vendor: 'nestjs-ratchet/class-validator', validate }),
  });
}

/** Of a class without a decorator class-validator knows nothing: it would refuse every payload. */
function requireDecorated(dto: unknown, { validator }: Peers): void {
  const isClass = typeof dto === 'function' && typeof dto.prototype === 'object' && dto.prototype !== null;
  if (!isClass) throw new InvalidClassSchemaError('class', dto, 'a class');
  const marks = validator.getMetadataStorage().getTargetValidationMetadatas(dto, '', true, false);
  if (marks.length > 0) return;
  throw new InvalidClassSchemaError(
    'class',
    dto,
    'a class with a decorator of class-validator on at least one property (of the copy of the package that this process loads)',
  );
}
