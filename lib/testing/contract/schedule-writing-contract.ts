import { uuidv7 } from 'uuidv7';
import { type ScheduleWrite } from '../../store/schedule-store.js';
import { type ScheduleBench } from './schedule-store-subject.js';

/** What a schedule says, who may change it, and how it is found. */
export function describeWriting(bench: ScheduleBench): void {
  bench.it('gives back what was written', async (each) => {
    const spec = each.spec({
      origin: 'annotation',
      owner: 'Reports.daily',
      misfire: { catchUp: 7 },
      overlap: 'queue',
      jitterMs: 1_500,
      businessKey: `key-${uuidv7()}`,
      template: {
        payload: '{"a": [1, "ü"], "n": null}',
        priority: 4,
        version: 3,
        maxRetries: 2,
        backoff: { type: 'fixed', delayMs: 10, maxDelayMs: 20, jitter: 0.5 },
        timeoutMs: 99_000,
        tags: ['one', 'a "two"'],
      },
    });
    const write = { spec, revision: undefined, anchor: each.at(-5), nextAt: each.at(90_000) };
    each.expect(await each.store.write([write])).toEqual(['written']);
    const { payload, ...template } = spec.template;
    const row = await each.row(spec.id);
    each.expect(row).toMatchObject({
      ...spec,
      template,
      anchor: write.anchor,
      nextAt: write.nextAt,
      lastAt: undefined,
      paused: false,
      removedAt: undefined,
      fault: undefined,
      liveJobs: 0,
      waiting: 0,
    });
    each.expect(JSON.parse(row.template.payload)).toEqual(JSON.parse(payload));
  });

  bench.it('gives back what is left out, and payloads of every size', async (each) => {
    const large = JSON.stringify({ text: 'x'.repeat(50_000) });
    for (const payload of ['null', '"text"', large]) {
      const row = await each.written({ template: { payload } });
      each.expect(JSON.parse(row.template.payload)).toEqual(JSON.parse(payload));
      each.expect(row.template.backoff).toBe(undefined);
      each.expect(row.template.maxRetries).toBe(undefined);
      each.expect(row.businessKey).toBe(undefined);
    }
  });

  bench.it('lets one of twenty who insert the same schedules win', async (each) => {
    const specs = Array.from({ length: 10 }, () => each.spec());
    const writes = specs.map((spec) => ({ spec, revision: undefined, anchor: each.now, nextAt: each.now }));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        each.store.write(index % 2 === 0 ? writes : [...writes].reverse()),
      ),
    );
    const outcomes = answers.flat();
    each.expect(outcomes.filter((outcome) => outcome === 'written').length).toBe(specs.length);
    each.expect(outcomes.filter((outcome) => outcome === 'conflict').length).toBe(19 * specs.length);
    each.expect((await each.store.byIds(specs.map(({ id }) => id))).schedules.length).toBe(specs.length);
  });

  bench.it('overwrites the revision that it is told, and no other', async (each) => {
    const row = await each.written();
    const write = (revision: string | undefined, name: string): ScheduleWrite => ({
      spec: { ...row, name },
      revision,
      anchor: row.anchor,
      nextAt: each.at(1),
    });
    const other = each.spec();
    const answer = await each.store.write([
      write(row.revision, 'second'),
      { spec: other, revision: undefined, anchor: each.now, nextAt: undefined },
      { ...write('1', 'stale'), spec: each.spec() },
    ]);
    each.expect(answer).toEqual(['written', 'written', 'conflict']);
    each.expect(await each.row(row.id)).toMatchObject({ name: 'second', nextAt: each.at(1) });
    each.expect(await each.store.write([write(row.revision, 'third')])).toEqual(['conflict']);
    each.expect(await each.store.write([write(undefined, 'fourth')])).toEqual(['conflict']);
    each.expect((await each.row(row.id)).name).toBe('second');
  });

  bench.it('keeps when a schedule is due, also when it was fired since it was read', async (each) => {
    const row = await each.written();
    await each.fire(row.id, [], { advanceTo: each.at(5_000) });
    const write = { spec: row, revision: row.revision, anchor: row.anchor, nextAt: 'keep' } as const;
    each.expect(await each.store.write([write])).toEqual(['written']);
    each.expect((await each.row(row.id)).nextAt).toEqual(each.at(5_000));
  });

  bench.it('gives a business key to one schedule', async (each) => {
    const businessKey = `key-${uuidv7()}`;
    const first = await each.written({ businessKey });
    const second = await each.written();
    const third = each.spec({ businessKey });
    const outcomes = await each.store.write([
      { spec: { ...second, businessKey }, revision: second.revision, anchor: each.now, nextAt: each.now },
      { spec: third, revision: undefined, anchor: each.now, nextAt: each.now },
      { spec: { ...first, name: 'again' }, revision: first.revision, anchor: each.now, nextAt: each.now },
    ]);
    each.expect(outcomes).toEqual([{ heldBy: first.id }, { heldBy: first.id }, 'written']);
    const listed = await each.store.list({ businessKey, limit: 5 });
    each.expect(listed.map(({ id }) => id)).toEqual([first.id]);
    each.expect((await each.row(second.id)).businessKey).toBe(undefined);
    await each.store.delete([first.id]);
    const last = { spec: third, revision: undefined, anchor: each.now, nextAt: each.now };
    each.expect(await each.store.write([last])).toEqual(['written']);
  });

  bench.it(
    'gives a new business key to one of those who ask for it in one call, or at once',
    async (each) => {
      const writes = Array.from({ length: 6 }, () => ({
        spec: each.spec({ businessKey: `key of ${each.lane}` }),
        revision: undefined,
        anchor: each.now,
        nextAt: each.now,
      }));
      const outcomes = await Promise.all([
        each.store.write(writes.slice(0, 3)),
        each.store.write(writes.slice(3)),
      ]);
      each.expect(outcomes.flat().filter((outcome) => outcome === 'written').length).toBe(1);
    },
  );

  bench.it('pauses, resumes, and marks as broken, each time under another revision', async (each) => {
    const row = await each.written();
    each.expect(await each.store.mark(row.id, '1', { kind: 'paused' })).toBe(false);
    each.expect(await each.store.mark(row.id, row.revision, { kind: 'paused' })).toBe(true);
    const paused = await each.row(row.id);
    each.expect(paused).toMatchObject({ paused: true, nextAt: undefined });
    each.expect(await each.due(row.id)).toBe(undefined);
    each.expect(await each.store.mark(row.id, row.revision, { kind: 'broken', fault: 'late' })).toBe(false);

    const resume = { kind: 'resumed', nextAt: each.at(-1) } as const;
    each.expect(await each.store.mark(row.id, paused.revision, resume)).toBe(true);
    const resumed = await each.row(row.id);
    each.expect(resumed).toMatchObject({ paused: false, nextAt: each.at(-1) });

    const broken = { kind: 'broken', fault: 'no such zone' } as const;
    each.expect(await each.store.mark(row.id, resumed.revision, broken)).toBe(true);
    const marked = await each.row(row.id);
    each.expect(marked).toMatchObject({ fault: 'no such zone', nextAt: undefined });
    const write = { spec: row, revision: marked.revision, anchor: each.now, nextAt: each.now };
    each.expect(await each.store.write([write])).toEqual(['written']);
    each.expect((await each.row(row.id)).fault).toBe(undefined);
  });

  bench.it('keeps a schedule paused when it is written again', async (each) => {
    const row = await each.written();
    await each.store.mark(row.id, row.revision, { kind: 'paused' });
    const { revision } = await each.row(row.id);
    await each.store.write([{ spec: row, revision, anchor: each.now, nextAt: undefined }]);
    each.expect((await each.row(row.id)).paused).toBe(true);
  });

  bench.it('lists page by page, by tag and by origin', async (each) => {
    const tag = `tag-${uuidv7()}`;
    const rows = [];
    for (const origin of ['api', 'annotation', 'api'] as const) {
      rows.push(await each.written({ origin, template: { tags: ['every', tag] } }));
    }
    const ids = rows.map(({ id }) => id).sort();
    const idsOf = async (request: object): Promise<string[]> =>
      (await each.store.list({ tag, limit: 10, ...request })).map(({ id }) => id);
    each.expect(await idsOf({})).toEqual(ids);
    each.expect(await idsOf({ limit: 2 })).toEqual(ids.slice(0, 2));
    each.expect(await idsOf({ after: ids[1] })).toEqual(ids.slice(2));
    each.expect(await idsOf({ origin: 'annotation' })).toEqual([rows[1]?.id]);
    each.expect(await idsOf({ tag: 'nobody has it' })).toEqual([]);
  });

  bench.it('knows whether a node has the handler, and what is live', async (each) => {
    const served = await each.written({ overlap: 'queue' });
    const unserved = await each.written({ template: { name: 'nobody.has.it' } });
    await each.busy(served.id);
    await each.store.trigger({ id: served.id, jobId: uuidv7(), ifBusy: 'wait' });
    each.expect(await each.row(served.id)).toMatchObject({ served: true, liveJobs: 1, waiting: 1 });
    each.expect(await each.row(unserved.id)).toMatchObject({ served: false, liveJobs: 0, waiting: 0 });
    each.expect((await each.jobs.nodes()).find(({ id }) => id === each.node.id)?.schedules).toEqual([]);
  });

  bench.it('tells its time in whole milliseconds, the offset of tests included', async (each) => {
    await each.later(86_400_000, async () => {
      const [own, told] = [await each.store.now(), (await each.store.byIds([])).now];
      for (const time of [own, told]) {
        const ahead = time.getTime() - each.now.getTime();
        each.expect(ahead >= 86_400_000 && ahead < 86_400_000 + 60_000).toBe(true);
        each.expect(Number.isInteger(time.getTime())).toBe(true);
      }
    });
  });
}
