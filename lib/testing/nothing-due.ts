import { type HandlerRegistry } from '../jobs/handler-registry.js';
import { type JobView } from '../store/job-store.js';
import { NothingDueError } from './testing-errors.js';

/** What decides whether a job can be run now. */
export interface RunnerFacts {
  readonly now: Date;
  readonly lanes: readonly string[];
  readonly handlers: HandlerRegistry;
}

/** Why a live job cannot be run now; `undefined` when it can. */
export function obstacleOf(job: JobView, { now, lanes, handlers }: RunnerFacts): string | undefined {
  if (job.status !== 'pending') return `is ${job.status}`;
  const handler = handlers.find(job.name);
  if (!handler) return 'has no @Job handler in this application';
  if (job.version > handler.definition.version) {
    return `is of version ${job.version}, newer than that of ${handler.owner} (${handler.definition.version})`;
  }
  if (!lanes.includes(job.lane)) {
    return `is in lane "${job.lane}", which no handler's definition and no lanes option names`;
  }
  const inMs = job.scheduledAt.getTime() - now.getTime();
  return inMs > 0 ? `is due in ${spell(inMs)} (${job.scheduledAt.toISOString()})` : undefined;
}

/** The error of a `runNext` that found nothing. Says of each live job what it waits for. */
export function nothingDue(
  jobs: readonly JobView[],
  facts: RunnerFacts,
  name: string | undefined,
): NothingDueError {
  const live = jobs.filter(
    ({ status }) => status === 'pending' || status === 'running' || status === 'paused',
  );
  const lines = live.map(
    (job) =>
      `${job.name} (${job.id}) ${obstacleOf(job, facts) ?? 'is due, but was not asked for, or is locked'}`,
  );
  const what = name === undefined ? 'no job' : `no job "${name}"`;
  return new NothingDueError(`runNext: ${what} is due; ${hint(jobs, live, facts)}`, lines);
}

function hint(jobs: readonly JobView[], live: readonly JobView[], { handlers }: RunnerFacts): string {
  if (live.length > 0) return 'advance() and travelTo() move the clock:';
  if (jobs.length > 0) return `all ${jobs.length} that this application enqueued have ended`;
  const none = handlers.all().length === 0;
  return `this application has enqueued none${none ? ', and has no provider with a @Job method' : ''}`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** `1h 30m`: the two largest units; milliseconds below a second. */
function spell(ms: number): string {
  const first = UNITS.findIndex(([, unit]) => ms >= unit);
  if (first < 0) return `${Math.ceil(ms)}ms`;
  let left = ms;
  const parts: string[] = [];
  for (const [name, unit] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count > 0) parts.push(`${count}${name}`);
  }
  return parts.join(' ');
}
