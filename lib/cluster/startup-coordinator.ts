import { randomInt } from 'node:crypto';
import { InvalidStartupActionError } from '../errors/startup-errors.js';
import { type Duration, durationMs } from '../jobs/duration.js';
import { textFault } from '../jobs/limits.js';
import { type NodeRef } from '../store/job-store.js';
import { type LockStore } from '../store/lock-store.js';

/**
 * Lets one replica do at boot what would be waste, or a crowd, if all of them did it. Ask from any hook, with `worker: false`
 * too. It saves work and guarantees nothing: after `ttl` the next one may begin, whether or not the first has ended.
 *
 * @example One replica warms the cache; one that starts within the next ten minutes finds it warm.
 * ```ts
 * @Injectable()
 * class CacheWarmer implements OnApplicationBootstrap {
 *   constructor(
 *     private readonly startup: StartupCoordinator,
 *     private readonly cache: ProductCache,
 *   ) {}
 *
 *   async onApplicationBootstrap(): Promise<void> {
 *     if (!(await this.startup.tryAcquire('warm products', '10m'))) return;
 *     try {
 *       await this.cache.fill();
 *     } catch (error) {
 *       // Let the next replica try at once.
 *       await this.startup.release('warm products');
 *       throw error;
 *     }
 *   }
 * }
 * ```
 */
export abstract class StartupCoordinator {
  /**
   * Whether this process is to do it. For the process that has it already: yes, and for `ttl` from now.
   *
   * @param action - what is to be done: any text of at most 200 characters, the same in all replicas.
   * @param ttl - from 1 ms on; nobody else gets it for so long, unless it is released. Milliseconds, or text with a unit.
   * @throws InvalidStartupActionError, StoreError when the database is away.
   */
  abstract tryAcquire(action: string, ttl: Duration): Promise<boolean>;
  /**
   * Somebody else may do it. Does nothing when this process does not have it.
   *
   * @throws InvalidStartupActionError, StoreError when the database is away.
   */
  abstract release(action: string): Promise<void>;
}

const ACTION_LENGTH = 200;
/** So that actions of the app never meet the leases of the engine. */
const PREFIX = 'startup:';
/** Exclusive, as the largest that `randomInt` takes. */
const EPOCHS = 2 ** 47;

/**
 * The one over leases. Its owner is the process, not the node: at boot the node has no epoch yet, and with `worker: false` it
 * never has one. Epochs of nodes are positive, so a negative one is nobody's, and another one in each process.
 */
export class LeaseStartupCoordinator extends StartupCoordinator {
  readonly #locks: LockStore;
  readonly #process: NodeRef;

  constructor(locks: LockStore, nodeId: string) {
    super();
    this.#locks = locks;
    this.#process = { id: nodeId, epoch: String(-randomInt(1, EPOCHS)) };
  }

  override async tryAcquire(action: string, ttl: Duration): Promise<boolean> {
    const name = nameOf(action);
    const ttlMs = durationMs(ttl);
    if (ttlMs === undefined || ttlMs < 1) {
      throw new InvalidStartupActionError(
        'ttl',
        ttl,
        "milliseconds from 1 on, or a text like '30s' or '10m'",
      );
    }
    return this.#locks.tryLock(name, ttlMs, this.#process);
  }

  override async release(action: string): Promise<void> {
    await this.#locks.release(nameOf(action), this.#process);
  }
}

/** For tests without a database: a process that is alone. */
export class LoneStartupCoordinator extends StartupCoordinator {
  override tryAcquire(): Promise<boolean> {
    return Promise.resolve(true);
  }

  override release(): Promise<void> {
    return Promise.resolve();
  }
}

function nameOf(action: unknown): string {
  const fault = textFault(action, ACTION_LENGTH);
  if (fault) throw new InvalidStartupActionError('action', action, fault);
  return PREFIX + (action as string);
}
