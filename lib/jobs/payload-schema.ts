import { type StandardSchemaV1 } from '@standard-schema/spec';
import { describeError } from '../errors/describe-error.js';
import { PayloadInvalidError, type PayloadIssue } from '../errors/payload-errors.js';
import { pathText } from './json-writer.js';

/**
 * The schema's output for a value.
 *
 * @throws PayloadInvalidError with the path and the message of each issue; also when the schema itself throws.
 */
export async function validatePayload(
  jobName: string,
  schema: StandardSchemaV1,
  value: unknown,
  root: string,
): Promise<unknown> {
  return outputOf(jobName, await ask(jobName, schema, value, root), root);
}

/** The output for what was stored. JSON has no `undefined`: a payload that was left out is stored as `null`. */
export async function validateStored(
  jobName: string,
  schema: StandardSchemaV1,
  stored: unknown,
  root = 'payload',
  hint?: string,
): Promise<unknown> {
  const result = await ask(jobName, schema, stored, root);
  if (stored === null && result.issues !== undefined) {
    const absent = await ask(jobName, schema, undefined, root);
    if (absent.issues === undefined) return absent.value;
  }
  return outputOf(jobName, result, root, hint);
}

function outputOf(
  jobName: string,
  result: StandardSchemaV1.Result<unknown>,
  root: string,
  hint?: string,
): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map((issue) => toIssue(issue, root));
  throw new PayloadInvalidError(jobName, issues, hint);
}

async function ask(
  jobName: string,
  schema: StandardSchemaV1,
  value: unknown,
  root: string,
): Promise<StandardSchemaV1.Result<unknown>> {
  try {
    return await schema['~standard'].validate(value);
  } catch (error) {
    const { message } = describeError(error);
    throw new PayloadInvalidError(jobName, [{ path: root, message: `the schema threw: ${message}` }], '', {
      cause: error,
    });
  }
}

function toIssue({ message, path = [] }: StandardSchemaV1.Issue, root: string): PayloadIssue {
  const keys = path.map((part) => (typeof part === 'object' ? part.key : part));
  return { path: pathText(root, keys), message };
}
