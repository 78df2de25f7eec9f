/**
 * One PostgreSQL server for the whole run: RATCHET_TEST_DATABASE_URL when it is set, else the library's own embedded one, so
 * that it also starts where only root can enter (a clone below /root).
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import pg from 'pg';
import { compileFolder, forgetOldCompilations } from './compile.mjs';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
/** Fast and forgetful: these data live as long as the run. */
const SETTINGS = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '300' };

/** Another version in a container, where a Docker engine runs: `RATCHET_TEST_IMAGE=postgres:16 npm test`. */
async function startContainer(image) {
  const { GenericContainer, Wait } = await import('testcontainers');
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const container = await new GenericContainer(image)
    .withEnvironment({ POSTGRES_PASSWORD: 'postgres' })
    .withExposedPorts(5432)
    .withCommand(['postgres', ...settings])
    // The image starts a server twice: first to initialise itself.
    .withWaitStrategy(Wait.forLogMessage(/ready to accept connections/, 2))
    .start();
  const address = `${container.getHost()}:${container.getMappedPort(5432)}`;
  process.env.RATCHET_TEST_DATABASE_URL = `postgres://postgres:postgres@${address}/postgres`;
  globalThis.__RATCHET_STOP__ = () => container.stop();
}

export default async function setup() {
  if (process.env.RATCHET_TEST_DATABASE_URL) return;
  if (process.env.RATCHET_TEST_IMAGE) return startContainer(process.env.RATCHET_TEST_IMAGE);
  // Of this run alone: another may be going on.
  forgetOldCompilations();
  const library = join(ROOT, '.ratchet', `test-library-${process.pid}`);
  compileFolder(join(ROOT, 'lib'), library);
  const { startEmbeddedPostgres } = await import(pathToFileURL(join(library, 'embedded', 'index.js')).href);
  const folder = await mkdtemp(join(tmpdir(), 'ratchet-test-'));
  await chmod(folder, 0o755);
  const dataDir = join(folder, 'data');
  const first = await startEmbeddedPostgres({ dataDir });
  const client = new pg.Client({ connectionString: first.url });
  await client.connect();
  for (const [name, value] of Object.entries(SETTINGS))
    await client.query(`alter system set ${name} = ${value}`);
  await client.end();
  await first.stop();
  const server = await startEmbeddedPostgres({ dataDir });
  process.env.RATCHET_TEST_DATABASE_URL = server.url;
  globalThis.__RATCHET_STOP__ = async () => {
    await server.stop();
    await rm(library, { recursive: true, force: true });
    await rm(folder, { recursive: true, force: true });
  };
}
