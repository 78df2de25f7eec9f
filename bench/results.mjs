/**
 * `npm run bench -- --results`: 10 000 handles awaited at once, by the process that runs the jobs and by one that does not.
 * How many statements the waiting takes, how long they are, and what it adds to the run.
 */
import { JobStore } from '../dist/index.js';
import { Noop, startApp } from './app.mjs';

const JOBS = 10_000;
const now = () => performance.now();

/** Counts the questions of an app from now on. */
function countQuestions(app) {
  const store = app.get(JobStore, { strict: false });
  const original = store.ended.bind(store);
  const questions = [];
  store.ended = async (ids, everywhere) => {
    const at = now();
    const answer = await original(ids, everywhere);
    questions.push({ at, ids: ids.length, ms: now() - at, ended: answer.ended.length });
    return answer;
  };
  return questions;
}

const mostPerSecond = (questions) =>
  Math.max(
    0,
    ...questions.map(({ at }) => questions.filter((one) => one.at >= at && one.at < at + 1000).length),
  );

async function scene(url, title, { apart, awaited }) {
  let done = 0;
  let finish;
  const ran = new Promise((resolve) => (finish = resolve));
  const worker = await startApp(url, { concurrency: 100 }, () => ++done === JOBS && finish());
  const desk = apart ? await startApp(url, { worker: false }) : worker;
  const questions = countQuestions(desk.app);
  const began = now();
  const cpu = process.cpuUsage();
  const items = Array.from({ length: JOBS }, (_, n) => ({ payload: { n } }));
  const handles = await desk.scheduler.enqueueMany(Noop, items);
  const enqueued = now();
  const results = awaited ? Promise.all(handles.map((handle) => handle.result())) : ran;
  await results;
  const tookMs = now() - enqueued;
  const { user, system } = process.cpuUsage(cpu);
  const sum = (key) => questions.reduce((total, question) => total + question[key], 0);
  const mean = questions.length === 0 ? 0 : sum('ms') / questions.length;
  console.log(
    `${title.padEnd(40)} ${tookMs.toFixed(0).padStart(6)} ms, ${((user + system) / 1000).toFixed(0).padStart(6)} ms CPU of Node; ` +
      `${questions.length} statements (at most ${mostPerSecond(questions)} in a second), ${sum('ids')} ids, ` +
      `${mean.toFixed(1)} ms each at the mean, ${Math.max(0, ...questions.map(({ ms }) => ms)).toFixed(1)} at most; ` +
      `enqueueMany ${(enqueued - began).toFixed(0)} ms`,
  );
  if (apart) await desk.close();
  await worker.close();
}

/** Nothing ends: what the waiting alone costs. */
async function idle(url) {
  const desk = await startApp(url, { worker: false });
  const questions = countQuestions(desk.app);
  const items = Array.from({ length: JOBS }, (_, n) => ({ payload: { n } }));
  const handles = await desk.scheduler.enqueueMany(Noop, items, { delay: '1h' });
  const cpu = process.cpuUsage();
  await Promise.allSettled(handles.map((handle) => handle.result({ timeout: '20s' })));
  const { user, system } = process.cpuUsage(cpu);
  const last = questions.filter(({ at }) => at > now() - 10_000);
  console.log(
    `${'20 s in which none ends'.padEnd(40)} ${questions.length} statements, ${last.length} of them in the last 10 s, ` +
      `${(last.reduce((total, { ms }) => total + ms, 0) / last.length).toFixed(1)} ms each at the mean; ` +
      `${((user + system) / 1000 / 20).toFixed(0)} ms CPU of Node a second`,
  );
  await desk.close();
}

export async function results(url) {
  console.log(`\n${JOBS} handles awaited at once`);
  await scene(url, 'warm-up', { apart: false, awaited: true });
  await scene(url, 'nobody awaits', { apart: false, awaited: false });
  await scene(url, 'awaited by the process that runs them', { apart: false, awaited: true });
  await scene(url, 'awaited by a process that runs nothing', { apart: true, awaited: true });
  await idle(url);
}
