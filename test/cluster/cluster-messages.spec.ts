import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { ClusterMessages } from '../../lib/cluster/cluster-messages.js';
import { NoCoordinator } from '../../lib/cluster/no-coordinator.js';

const METHODS = ['notifyNewWork', 'publish', 'registerWakeupListener', 'registerSignalListener'] as const;

describe('ClusterMessages', () => {
  let lines: string[];
  beforeEach(() => {
    lines = [];
    jest
      .spyOn(Logger.prototype, 'error')
      .mockImplementation((line: unknown) => void lines.push(String(line)));
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  describe.each(['throws', 'rejects'])('a coordinator of the user that %s', (how) => {
    const broken = (): ClusterMessages => {
      const coordinator = new NoCoordinator();
      for (const method of METHODS) {
        coordinator[method] = (): never => {
          const error = new Error('redis is away');
          if (how === 'throws') throw error;
          return Promise.reject(error) as never;
        };
      }
      return new ClusterMessages(coordinator, 'here');
    };

    it('stops neither the caller nor what is told within the process, and is named once', async () => {
      const messages = broken();
      const heard: unknown[] = [];
      const off = [
        messages.onWakeup((wakeup) => heard.push(wakeup)),
        messages.onSignal((signal) => heard.push(signal)),
      ];
      for (let time = 0; time < 3; time += 1) {
        messages.newWork('mail', 2);
        messages.signal({ kind: 'cancel', jobId: 'j' });
        await new Promise(setImmediate);
      }
      for (const unregister of off) unregister();
      messages.newWork('mail', 2);
      expect(heard).toHaveLength(6);
      expect(lines).toHaveLength(METHODS.length);
      for (const method of METHODS) expect(lines.join('\n')).toContain(`${method}() failed`);
    });
  });

  it('names a coordinator again that failed, worked and fails', () => {
    const coordinator = new NoCoordinator();
    let away = true;
    coordinator.notifyNewWork = () => {
      if (away) throw new Error('away');
    };
    const messages = new ClusterMessages(coordinator, 'here');
    for (away of [true, true, false, true]) messages.newWork('mail', 2);
    expect(lines).toHaveLength(2);
  });

  it('goes on when the logger throws too', () => {
    jest.spyOn(Logger.prototype, 'error').mockImplementation(() => {
      throw new Error('disk full');
    });
    const coordinator = new NoCoordinator();
    coordinator.notifyNewWork = () => {
      throw new Error('away');
    };
    expect(() => new ClusterMessages(coordinator, 'here').newWork('mail', 2)).not.toThrow();
  });

  it('tells in the async context of nobody', () => {
    const tenant = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const coordinator = new NoCoordinator();
    coordinator.notifyNewWork = () => void seen.push(tenant.getStore());
    const messages = new ClusterMessages(coordinator, 'here');
    messages.onWakeup(() => void seen.push(tenant.getStore()));
    tenant.run('a', () => messages.newWork('mail', 2));
    expect(seen).toEqual([undefined, undefined]);
  });
});
