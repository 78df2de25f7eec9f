import {
  type ControlAction,
  type ControlPlace,
  type ControlStep,
  type FoundJobs,
  type JobQuery,
  type PageRequest,
} from '../../job-store.js';
import { type PostgresSession } from '../postgres-session.js';
import { decodeJob } from '../statements/views.js';
import { BulkStep } from './bulk-control.js';
import { countControllable, isControllable } from './control-statement.js';
import { type ComposedQuery, countJobs, findJobs } from './find-jobs.js';

/**
 * Questions about many jobs, and what is done to many. Their texts are put together of what is asked, so that the planner sees it, and
 * are sent unnamed, so that each is planned for its values.
 */
export class JobQueries {
  constructor(private readonly session: PostgresSession) {}

  async find(query: JobQuery, page: PageRequest): Promise<FoundJobs> {
    const composed = findJobs(this.session.schema, query, page);
    if (!composed) return { jobs: [], more: false };
    const rows = await this.session.read({ text: composed.text }, composed.parameters);
    return { jobs: rows.map(decodeJob), more: Number(rows[0]?.['found'] ?? 0) > rows.length };
  }

  count(query: JobQuery): Promise<number> {
    return this.#count(countJobs(this.session.schema, query));
  }

  countControllable(kind: ControlAction['kind'], query: JobQuery): Promise<number> {
    return this.#count(
      isControllable({ kind }, query) ? countControllable(this.session.schema, kind, query) : undefined,
    );
  }

  control(action: ControlAction, query: JobQuery, place?: ControlPlace): Promise<ControlStep> {
    return new BulkStep(this.session, action, query, place).run();
  }

  async #count(composed: ComposedQuery | undefined): Promise<number> {
    if (!composed) return 0;
    const [row] = await this.session.read({ text: composed.text }, composed.parameters);
    return Number(row?.['count']);
  }
}
