import { type FindOptions, type JobFilter } from '../jobs/job-filter.js';
import { type FoundJobs, type JobQuery, type JobStore } from '../store/job-store.js';
import { readFilter, readPage } from './job-arguments.js';
import { type JobInfo, jobInfo } from './job-info.js';
import { cursorBehind } from './page-cursor.js';

/** One page of `find`. */
export interface JobPage {
  /** Newest first, by the time of their enqueue. Fewer than `limit` when their payloads and results are large. */
  readonly jobs: readonly JobInfo[];
  /** Gets the next page; `undefined` on the last one. Text of a few letters that fits in a URL. */
  readonly cursor: string | undefined;
}

/** Payloads come with the jobs, so a page that nobody asked for by its size is kept small. */
const ITERATED_AT_A_TIME = 100;

export type JobFinderStore = Pick<JobStore, 'find' | 'count'>;

/** Answers questions about many jobs. A page is a place in the order of ids, so jobs that move between the tables stay where they are. */
export class JobFinder {
  constructor(private readonly store: JobFinderStore) {}

  async find(filter: JobFilter | undefined, options: FindOptions | undefined): Promise<JobPage> {
    const query = readFilter('find', filter);
    const { limit, before } = readPage('find', options);
    const { jobs, more } = await this.#page(query, limit, before);
    const last = jobs.at(-1);
    return { jobs: jobs.map(jobInfo), cursor: more && last ? cursorBehind(last.id) : undefined };
  }

  /** The filter is checked in the call, not at the first job. */
  all(filter: JobFilter | undefined): AsyncIterableIterator<JobInfo> {
    return this.#each(readFilter('findAll', filter));
  }

  async count(filter: JobFilter | undefined): Promise<number> {
    return await this.store.count(readFilter('count', filter));
  }

  async *#each(query: JobQuery): AsyncGenerator<JobInfo, undefined> {
    let before: string | undefined;
    for (;;) {
      const { jobs, more } = await this.#page(query, ITERATED_AT_A_TIME, before);
      for (const job of jobs) yield jobInfo(job);
      if (!more) return undefined;
      before = jobs.at(-1)?.id;
    }
  }

  #page(query: JobQuery, limit: number, before: string | undefined): Promise<FoundJobs> {
    return this.store.find(query, { limit, ...(before === undefined ? {} : { before }) });
  }
}
