/** The packed module by `require`: the same classes as by `import`, and every entry loads. */
const ratchet = require('nestjs-ratchet');
const embedded = require('nestjs-ratchet/embedded');
const testing = require('nestjs-ratchet/testing');
const { version } = require('nestjs-ratchet/package.json');

import('nestjs-ratchet').then((imported) => {
  const one = imported.JobScheduler === ratchet.JobScheduler;
  const loaded = [ratchet.RatchetModule, embedded.startEmbeddedPostgres, testing.RatchetTestingModule].every(
    (entry) => typeof entry === 'function',
  );
  console.log(`${one} ${loaded} ${version}`);
});
