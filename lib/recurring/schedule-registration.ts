import { counted } from '../errors/counted.js';
import { ScheduleIdTakenError, ScheduleRegistrationError } from '../errors/schedule-registration-errors.js';
import { showValue } from '../errors/show-value.js';
import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type EngineEvents } from '../observability/engine-events.js';
import { type ScheduleRow, type ScheduleStore, type ScheduleWrite } from '../store/schedule-store.js';
import { annotatedWrite } from './annotated-write.js';
import { type RecurringLogger } from './recurring-parts.js';
import { renamedLines } from './renamed-lines.js';
import { type RuleCache } from './rule-cache.js';

/** Each means that another node has written; those of one version agree after the first. */
const TRIES = 20;
const PAGE = 500;
/** Beyond it their number says more. */
const MOST_IDS = 10;

export interface ScheduleRegistrationParts {
  readonly store: ScheduleStore;
  readonly rules: RuleCache;
  readonly events: EngineEvents;
  readonly logger: RecurringLogger;
  /** Repeats a step until the database lets it through. */
  readonly until: <T>(what: string, step: () => Promise<T>) => Promise<T>;
}

/**
 * Brings what the methods of this process are annotated with to the database, before the node serves: by id, in place, and only
 * what is new or says something else. Twenty nodes that start at once come to one row each; every write says what it has seen.
 * It never touches schedules that were created in code.
 */
export class ScheduleRegistration {
  readonly #parts: ScheduleRegistrationParts;
  readonly #created = new Set<string>();
  readonly #changed = new Set<string>();

  constructor(parts: ScheduleRegistrationParts) {
    this.#parts = parts;
  }

  /** @throws ScheduleIdTakenError, ScheduleRegistrationError, and what `until` throws. */
  async register(annotated: readonly AnnotatedSchedule[]): Promise<void> {
    if (annotated.length === 0) return;
    let left = annotated;
    for (let tries = 0; left.length > 0; tries += 1) {
      if (tries === TRIES)
        throw new ScheduleRegistrationError(
          left.map(({ spec }) => spec.id),
          TRIES,
        );
      left = await this.#write(left);
    }
    this.#tell(annotated.length);
    await this.#tellRenamed(annotated);
  }

  /**
   * After the row of the node was gone for a while: what nobody had meanwhile may be removed, and begins afresh. All others are left
   * alone: nodes of a newer version may have changed them.
   *
   * @throws as {@link ScheduleRegistration.register}.
   */
  async restore(annotated: readonly AnnotatedSchedule[]): Promise<void> {
    if (annotated.length === 0) return;
    const { store, until } = this.#parts;
    const ids = annotated.map(({ spec }) => spec.id);
    const { schedules } = await until('registration of schedules', () => store.byIds(ids));
    const kept = new Set(schedules.flatMap(({ id, removedAt }) => (removedAt === undefined ? [id] : [])));
    await this.register(annotated.filter(({ spec }) => !kept.has(spec.id)));
  }

  /** Returns those that somebody else wrote meanwhile. */
  async #write(annotated: readonly AnnotatedSchedule[]): Promise<readonly AnnotatedSchedule[]> {
    const { store, rules, until } = this.#parts;
    const ids = annotated.map(({ spec }) => spec.id);
    const { now, schedules } = await until('registration of schedules', () => store.byIds(ids));
    const rows = new Map(schedules.map((row) => [row.id, row]));
    for (const { spec } of annotated) refuseTaken(rows.get(spec.id), spec.owner ?? spec.id);
    const writes = annotated.flatMap(({ spec }): ScheduleWrite[] => {
      const write = annotatedWrite(spec, rows.get(spec.id), now, rules);
      return write ? [write] : [];
    });
    if (writes.length === 0) return [];
    const outcomes = await until('registration of schedules', () => store.write(writes));
    const written = writes.filter((_, index) => outcomes[index] === 'written');
    for (const { spec, revision } of written)
      (revision === undefined ? this.#created : this.#changed).add(spec.id);
    const others = new Set(writes.filter((write) => !written.includes(write)).map(({ spec }) => spec.id));
    return annotated.filter(({ spec }) => others.has(spec.id));
  }

  #tell(count: number): void {
    const { logger, events } = this.#parts;
    const created = [...this.#created];
    const changed = [...this.#changed];
    const unchanged = count - created.length - changed.length;
    const news = [listed('new', created), listed('changed', changed)].filter((text) => text !== '');
    logger.log(
      `${counted(count, 'recurring schedule')} of this node${news.length > 0 ? `; ${news.join('; ')}` : ''}`,
    );
    events.emit('schedules_registered', { created, changed, unchanged });
  }

  async #tellRenamed(annotated: readonly AnnotatedSchedule[]): Promise<void> {
    const { store, logger, until } = this.#parts;
    const created = annotated.filter(({ spec }) => this.#created.has(spec.id) && spec.id === spec.owner);
    if (created.length === 0) return;
    const own = new Set(annotated.map(({ spec }) => spec.id));
    const others: ScheduleRow[] = [];
    for (let after: string | undefined; ;) {
      const page = await until('registration of schedules', () =>
        store.list({ after, limit: PAGE, origin: 'annotation' }),
      );
      others.push(...page.filter(({ id }) => !own.has(id)));
      after = page.at(-1)?.id;
      if (page.length < PAGE) break;
    }
    for (const line of renamedLines(created, others)) logger.warn(line);
  }
}

function refuseTaken(row: ScheduleRow | undefined, owner: string): void {
  if (row?.origin === 'api') throw new ScheduleIdTakenError(row.id, owner, row.name);
}

function listed(what: string, ids: readonly string[]): string {
  if (ids.length === 0) return '';
  const shown = ids.slice(0, MOST_IDS).map((id) => showValue(id));
  return `${ids.length} ${what}: ${shown.join(', ')}${ids.length > MOST_IDS ? ', …' : ''}`;
}
