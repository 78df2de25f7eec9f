import { uuidv7 } from 'uuidv7';
import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { makeDefinition } from '../jobs/define-job.js';
import {
  type EnqueueItemOptions,
  type EnqueueManyItem,
  type EnqueueManyOptions,
} from '../jobs/enqueue-options.js';
import { type HandlerRegistry } from '../jobs/handler-registry.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { encodePayload } from '../jobs/payload-codec.js';
import { type NewJob } from '../store/job-store.js';
import { resolveEnqueue } from './enqueue-settings.js';

export interface JobMakerOptions {
  readonly payloadBytes: number;
  readonly idempotencyExpiryMs: number;
  /** The definitions that this process has handlers of, for `enqueueNamed`. */
  readonly handlers?: Pick<HandlerRegistry, 'find'> | undefined;
}

/** Jobs checked at a time before the event loop gets its turn. */
const AT_A_TIME = 1_000;

/**
 * Makes the row of a job from definition, payload and options, and refuses what is wrong with any of them. No I/O.
 * What the options do not say and the row need not say is left out, so that a later deploy of the definition counts.
 */
export class JobMaker {
  constructor(private readonly options: JobMakerOptions) {}

  async make(id: string, definition: JobDefinition, payload: unknown, options: unknown): Promise<NewJob> {
    this.#requireDefinition(definition);
    const settings = resolveEnqueue(definition, options, this.options.idempotencyExpiryMs, {
      allow: ['transaction'],
    });
    const text = await encodePayload(definition, payload, this.options.payloadBytes);
    return { id, name: definition.name, version: definition.version, payload: text, ...settings };
  }

  async makeMany(
    definition: JobDefinition,
    items: readonly EnqueueManyItem<unknown>[],
    shared: EnqueueManyOptions = {},
  ): Promise<NewJob[]> {
    this.#requireDefinition(definition);
    const { name, version } = definition;
    if (!Array.isArray(items)) {
      throw new InvalidEnqueueOptionError(name, 'items', items, 'an array of { payload, options }');
    }
    const { idempotencyExpiryMs, payloadBytes } = this.options;
    const common = resolveEnqueue(definition, shared, idempotencyExpiryMs, { allow: ['transaction'] });
    const jobs: NewJob[] = [];
    const ids = items.map(() => uuidv7());
    for (const [index, id] of ids.entries()) {
      const item: unknown = items[index];
      if (!isItem(item))
        throw new InvalidEnqueueOptionError(name, `items[${index}]`, item, '{ payload, options }');
      const settings = item.options
        ? resolveEnqueue(definition, overlay(shared, item.options), idempotencyExpiryMs, {
            prefix: `items[${index}].options.`,
          })
        : common;
      const payload = await encodePayload(definition, item.payload, payloadBytes);
      jobs.push({ id, name, version, payload, ...settings });
      if (index % AT_A_TIME === AT_A_TIME - 1) await new Promise(setImmediate);
    }
    return jobs;
  }

  /** The definition of that name if this process handles it, else one with nothing but the name. */
  named(name: string, version: number | undefined): JobDefinition {
    const known = this.options.handlers?.find(name)?.definition;
    if (known && (version === undefined || version === known.version)) return known;
    return makeDefinition(name, { version });
  }

  #requireDefinition(definition: unknown): asserts definition is JobDefinition {
    const given = definition as Partial<JobDefinition> | undefined | null;
    if (
      typeof given === 'object' &&
      given !== null &&
      typeof given.name === 'string' &&
      typeof given.version === 'number'
    ) {
      return;
    }
    throw new InvalidEnqueueOptionError(
      'enqueue',
      'definition',
      definition,
      'what defineJob() returned; for a name alone use enqueueNamed()',
    );
  }
}

function isItem(item: unknown): item is EnqueueManyItem<unknown> {
  return typeof item === 'object' && item !== null && !Array.isArray(item);
}

/** What an item says counts more; its delay replaces a common runAt, and the other way round. */
function overlay(shared: EnqueueManyOptions, own: EnqueueItemOptions): object {
  const common: Record<string, unknown> = { ...shared };
  delete common['transaction'];
  if (own.delay !== undefined || own.runAt !== undefined) {
    delete common['delay'];
    delete common['runAt'];
  }
  const said = Object.entries(own).filter(([, value]) => value !== undefined);
  return { ...common, ...Object.fromEntries(said) };
}
