import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RatchetRuntime } from 'nestjs-ratchet';
import { LanesModule } from './lanes.module.js';

/** One of the processes that run jobs, until it is told to stop, or whoever started it is gone. */
const [, , databaseUrl = '', nodeId = ''] = process.argv;
Logger.overrideLogger(['fatal', 'error']);
const stopped = new Promise<void>((resolve) => {
  process.once('message', () => resolve());
  process.once('disconnect', () => resolve());
});
const app = await NestFactory.createApplicationContext(LanesModule.for(databaseUrl, nodeId), {
  abortOnError: false,
});
process.send?.('ready');
await stopped;
await app.get(RatchetRuntime).drain();
await app.close();
if (process.connected) process.disconnect();
