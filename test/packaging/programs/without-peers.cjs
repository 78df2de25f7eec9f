/** The packed module where class-validator and class-transformer are not installed. */
const Module = require('node:module');

const resolve = Module._resolveFilename;
Module._resolveFilename = function (name, ...rest) {
  if (/^class-(validator|transformer)$/.test(name)) {
    throw Object.assign(new Error(`Cannot find module '${name}'`), { code: 'MODULE_NOT_FOUND' });
  }
  return resolve.call(this, name, ...rest);
};

const { defineJob } = require('nestjs-ratchet');
const { classSchema } = require('nestjs-ratchet/class-validator');

try {
  defineJob('x', { schema: classSchema(class Order {}) });
} catch ({ code, message }) {
  console.log(code, message.slice(message.lastIndexOf('; ') + 2));
}
