import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Job, JobScheduler, RatchetModule } from 'nestjs-ratchet';
import pg from 'pg';
import { ended } from '../module/app.js';

let dataDir: string;

beforeAll(async () => {
  Logger.overrideLogger(false);
  const home = await mkdtemp(join(tmpdir(), 'ratchet-embedded-'));
  await chmod(home, 0o755);
  dataDir = join(home, 'postgres');
});
afterAll(() => rm(join(dataDir, '..'), { recursive: true, force: true }));

describe("database: 'embedded'", () => {
  it('starts a server, runs jobs, and stops the server after the drain', async () => {
    let begun: () => void = () => {};
    const running = new Promise<void>((resolve) => (begun = resolve));
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));

    @Injectable()
    class Jobs {
      @Job('quick')
      quick(): string {
        return 'done';
      }
      @Job('slow')
      async slow(): Promise<string> {
        begun();
        await gate;
        return 'finished while draining';
      }
    }
    const boot = async () => {
      const ratchet = RatchetModule.forRoot({ database: { embedded: { dataDir } } });
      const app = await Test.createTestingModule({ imports: [ratchet], providers: [Jobs] }).compile();
      return app.init();
    };

    const app = await boot();
    const quick = await app.get(JobScheduler).enqueueNamed('quick');
    expect(await ended(app, quick.id)).toMatchObject({ status: 'succeeded', result: 'done' });
    const slow = await app.get(JobScheduler).enqueueNamed('slow');
    await running;
    const port = Number((await readFile(join(dataDir, 'postmaster.pid'), 'utf8')).split('\n')[3]);
    const closed = app.close();
    release();
    await closed;
    const late = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', password: 'ratchet' });
    await expect(late.connect()).rejects.toMatchObject({ code: 'ECONNREFUSED' });

    const again = await boot();
    expect(await again.get(JobScheduler).get(slow.id)).toMatchObject({
      status: 'succeeded',
      result: 'finished while draining',
    });
    await again.close();
  });

  it('is refused under NODE_ENV=production', async () => {
    process.env['NODE_ENV'] = 'production';
    try {
      const booted = Test.createTestingModule({
        imports: [RatchetModule.forRoot({ database: { embedded: { dataDir } } })],
      }).compile();
      await expect(booted).rejects.toMatchObject({ code: 'EMBEDDED_IN_PRODUCTION' });
    } finally {
      process.env['NODE_ENV'] = 'test';
    }
  });
});
