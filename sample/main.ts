import 'reflect-metadata';
import { rm } from 'node:fs/promises';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RatchetRuntime } from 'nestjs-ratchet';
import { AppModule } from './app.module.js';
import { openDatabase } from './database.js';
import { OrderDay } from './orders/order-day.js';
import { Summary } from './report/summary.js';
import { readOptions, USAGE, type SampleOptions } from './sample-options.js';

/** One start of the sample, from the first line to the table. Returns the exit code. */
async function main(options: SampleOptions): Promise<number> {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());

  // What jobs do is shown by the sample itself.
  Logger.overrideLogger(['fatal', 'error']);
  const database = await openDatabase(options);
  console.log(`Ratchet sample on ${database.label}, invoices in ${options.outputDir}`);
  console.log(`Kill it whenever you like (kill -9 ${process.pid}), and start it again.\n`);
  try {
    if (options.reset) await rm(options.outputDir, { recursive: true, force: true });
    const app = await NestFactory.createApplicationContext(AppModule.for(database.url, options), {
      abortOnError: false,
    });
    try {
      await app.get(OrderDay).run(stop.signal);
      if (stop.signal.aborted) console.log('\nStopping: invoices under way are finished first.');
      // Drained before the app closes: handlers still have everything that they use.
      await app.get(RatchetRuntime).drain();
      console.log(stop.signal.aborted ? '\nSo far:\n' : '\nWhat happened:\n');
      const complete = await app.get(Summary).print();
      if (stop.signal.aborted) console.log('\nnpm start goes on from here.');
      return complete ? 0 : stop.signal.aborted ? 130 : 1;
    } finally {
      await app.close();
    }
  } finally {
    await database.close();
  }
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options) process.exitCode = await main(options);
  else console.log(USAGE);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
