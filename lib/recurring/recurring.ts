import { type AnnotatedSchedule } from '../jobs/schedule-spec.js';
import { type ClaimedJob, type NodeRef } from '../store/job-store.js';
import { LEASE_MS } from './due-round.js';
import { type NodeRun } from './node-run.js';
import { NodeScopeRunner } from './node-scope-runner.js';
import { RECURRING_LANE } from './recurring-lane.js';
import { type RecurringParts } from './recurring-parts.js';
import { RecurringRunner } from './recurring-runner.js';
import { RuleCache } from './rule-cache.js';
import { ScheduleRegistration, type ScheduleRegistrationParts } from './schedule-registration.js';

export interface NodeRecurringParts extends RecurringParts {
  readonly annotated: readonly AnnotatedSchedule[];
  /** Runs an occurrence of scope `node`. */
  readonly run: (job: ClaimedJob) => NodeRun;
  /** Whether other nodes run that may see to what became due before this one came. */
  readonly othersRun?: (node: NodeRef) => Promise<boolean>;
}

/** Longer than the lease of a node that was just killed. */
const NEWCOMER_YIELDS_MS = LEASE_MS + 500;

/**
 * The recurring schedules of one node, for the engine: registers those of its methods, fires what is due in the cluster, and
 * runs what each node runs for itself.
 */
export class Recurring {
  readonly #parts: NodeRecurringParts;
  readonly #rules = new RuleCache();
  #runner: RecurringRunner | undefined;
  #ofNode: NodeScopeRunner | undefined;
  #unregister: () => void = () => {};
  #held = false;
  #yieldMs = 0;
  #stopped = false;

  constructor(parts: NodeRecurringParts) {
    this.#parts = parts;
  }

  /** Bodies of scope `node` that have not ended. */
  get running(): number {
    return this.#ofNode?.running ?? 0;
  }

  /** Before the node serves. @throws as {@link ScheduleRegistration.register} */
  async register(until: ScheduleRegistrationParts['until'], node: NodeRef): Promise<void> {
    const { annotated, othersRun } = this.#parts;
    await new ScheduleRegistration({ ...this.#parts, rules: this.#rules, until }).register(annotated);
    // To a newcomer what was due before it came is missed; those who were there know better, and go first.
    if (await othersRun?.(node).catch(() => false)) this.#yieldMs = NEWCOMER_YIELDS_MS;
  }

  /** When the node has registered again. @throws as {@link ScheduleRegistration.restore} */
  async restore(until: ScheduleRegistrationParts['until']): Promise<void> {
    const { annotated } = this.#parts;
    await new ScheduleRegistration({ ...this.#parts, rules: this.#rules, until }).restore(annotated);
    this.dueIn(0);
  }

  /** Begins, or goes on in the name of another node. */
  attend(node: NodeRef): void {
    if (this.#stopped) return;
    if (this.#runner) {
      this.#runner.rename(node);
      return;
    }
    const parts = { ...this.#parts, rules: this.#rules };
    this.#runner = new RecurringRunner(node, parts);
    this.#runner.hold(this.#held);
    this.#runner.start(this.#yieldMs);
    const ofNode = new NodeScopeRunner(parts.annotated, { ...parts, nodeId: node.id });
    this.#ofNode = ofNode;
    ofNode.start();
    this.#unregister = parts.messages.onWakeup(({ lane }) => {
      if (lane === RECURRING_LANE) ofNode.changed();
    });
  }

  /** The database says that something is due in so many milliseconds. */
  dueIn(ms: number): void {
    this.#runner?.dueIn(ms);
  }

  /** True: this node's heartbeats are not acknowledged. What it runs for itself goes on. */
  hold(held: boolean): void {
    this.#held = held;
    this.#runner?.hold(held);
  }

  /** No further firing and no further run. Resolves when no statement is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unregister();
    this.#ofNode?.stop();
    await this.#runner?.stop();
  }

  /** No body of scope `node` runs. */
  async whenIdle(): Promise<void> {
    await this.#ofNode?.whenIdle();
  }

  /** The node stops: bodies of scope `node` are told. */
  abort(): void {
    this.#ofNode?.abort();
  }
}
