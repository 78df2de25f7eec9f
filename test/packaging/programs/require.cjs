/** The packed module by `require`: the same classes as by `import`, and every entry loads. */
const ratchet = require('nestjs-ratchet');
const classes = require('nestjs-ratchet/class-validator');
const embedded = require('nestjs-ratchet/embedded');
const health = require('nestjs-ratchet/health');
const testing = require('nestjs-ratchet/testing');
const { version } = require('nestjs-ratchet/package.json');

import('nestjs-ratchet').then((imported) => {
  const one = imported.JobScheduler === ratchet.JobScheduler;
  const loaded = [
    ratchet.RatchetModule,
    classes.classSchema,
    embedded.startEmbeddedPostgres,
    health.RatchetHealthModule,
    testing.RatchetTestingModule,
  ].every((entry) => typeof entry === 'function');
  console.log(`${one} ${loaded} ${version}`);
});
