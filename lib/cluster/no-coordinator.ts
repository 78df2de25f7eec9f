import { ClusterCoordinator } from './cluster-coordinator.js';

/** One node, or nodes that are content to poll: tells nobody anything. */
export class NoCoordinator extends ClusterCoordinator {
  override notifyNewWork(): void {}
  override registerWakeupListener(): () => void {
    return () => {};
  }
  override publish(): void {}
  override registerSignalListener(): () => void {
    return () => {};
  }
  override close(): Promise<void> {
    return Promise.resolve();
  }
}
