import { uuidv7 } from 'uuidv7';
import { InvalidJobDefinitionError } from '../errors/definition-errors.js';
import { InvalidEnqueueOptionError } from '../errors/enqueue-errors.js';
import { makeDefinition } from '../jobs/define-job.js';
import { type EnqueueManyItem } from '../jobs/enqueue-options.js';
import { type HandlerRegistry } from '../jobs/handler-registry.js';
import { type JobDefinition } from '../jobs/job-definition.js';
import { encodePayload } from '../jobs/payload-codec.js';
import { RECURRING_SUFFIX } from '../jobs/recurrence.js';
import { type NewJob } from '../store/job-store.js';
import { resolveEnqueue } from './enqueue-settings.js';
import { itemOf, itemsOf } from './many-items.js';

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

  /** @param allow - options that the caller reads itself. */
  async make(
    id: string,
    definition: JobDefinition,
    payload: unknown,
    options: unknown,
    allow: readonly string[],
  ): Promise<NewJob> {
    this.#requireDefinition(definition);
    const settings = resolveEnqueue(definition, options, this.options.idempotencyExpiryMs, { allow });
    const text = await encodePayload(definition, payload, this.options.payloadBytes);
    return { id, name: definition.name, version: definition.version, payload: text, ...settings };
  }

  /** The payload alone, for jobs that are made later: as JSON text, checked as that of an enqueue. */
  async payload(definition: JobDefinition, payload: unknown): Promise<string> {
    this.#requireDefinition(definition);
    return await encodePayload(definition, payload, this.options.payloadBytes);
  }

  async makeMany(
    definition: JobDefinition,
    items: readonly EnqueueManyItem<unknown>[],
    shared: object | undefined,
  ): Promise<NewJob[]> {
    this.#requireDefinition(definition);
    const { name, version } = definition;
    const given = itemsOf(name, items);
    const { idempotencyExpiryMs, payloadBytes } = this.options;
    const common = resolveEnqueue(definition, shared, idempotencyExpiryMs, {
      allow: ['transaction', 'durability'],
    });
    const jobs: NewJob[] = [];
    const ids = given.map(() => uuidv7());
    for (const [index, id] of ids.entries()) {
      const place = `items[${index}]`;
      const item = itemOf(name, given[index], place, shared);
      const settings = item.options
        ? resolveEnqueue(definition, item.options, idempotencyExpiryMs, { prefix: `${place}.options.` })
        : common;
      const payload = await encodePayload(definition, item.payload, payloadBytes, `${place}.payload`);
      jobs.push({ id, name, version, payload, ...settings });
      if (index % AT_A_TIME === AT_A_TIME - 1) await new Promise(setImmediate);
    }
    return jobs;
  }

  /** The definition of that name if this process handles it, else one with nothing but the name. */
  named(name: string, version: unknown): JobDefinition {
    const handler = this.options.handlers?.find(name);
    // Jobs of failure handlers and of schedules are not for anybody to enqueue: their name is refused below.
    const isReserved = handler?.failureOf || handler?.definition.name.endsWith(RECURRING_SUFFIX);
    const known = isReserved ? undefined : handler?.definition;
    if (known && (version === undefined || version === known.version)) return known;
    try {
      return makeDefinition(name, { version });
    } catch (error) {
      if (!(error instanceof InvalidJobDefinitionError)) throw error;
      // Nobody called defineJob: name and version are what this call was given.
      const label = error.key === 'name' ? 'enqueueNamed' : name;
      throw new InvalidEnqueueOptionError(label, error.key, error.value, error.allowed);
    }
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
