/** The packed module where @nestjs/terminus is not installed. */
import 'reflect-metadata';
import { register } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RatchetTestingModule } from 'nestjs-ratchet/testing';
import { RatchetHealthModule } from 'nestjs-ratchet/health';

const hooks = `export const resolve = (name, context, next) => {
  if (name !== '@nestjs/terminus') return next(name, context);
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
};`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

class AppModule {}
Module({ imports: [RatchetTestingModule.forRoot(), RatchetHealthModule] })(AppModule);
try {
  await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
} catch ({ code, message }) {
  console.log(code, message.slice(message.lastIndexOf('; ') + 2));
}
