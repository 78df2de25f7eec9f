import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type JobStatus,
  type JobTransition,
  LIVE_STATUSES,
  statusAfter,
  TERMINAL_STATUSES,
  TRANSITIONS,
} from '../../lib/jobs/job-status.js';

const transitions = Object.keys(TRANSITIONS) as JobTransition[];
const statuses: readonly JobStatus[] = [...LIVE_STATUSES, ...TERMINAL_STATUSES];
const walks = fc.array(fc.constantFrom(...transitions), { maxLength: 60 });

interface Walked {
  status: JobStatus;
  seq: number;
  /** The claim under way. */
  claim: number | undefined;
}

/** Follows a job through transitions, leaving out those that its status does not allow. */
function walk(
  steps: readonly JobTransition[],
  each: (step: JobTransition, before: Walked, after: Walked) => void,
): void {
  let job: Walked = { status: 'pending', seq: 0, claim: undefined };
  for (const step of steps) {
    const status = statusAfter(job.status, step);
    if (status === undefined) continue;
    const seq = job.seq + (TRANSITIONS[step].fences ? 1 : 0);
    const after = { status, seq, claim: status === 'running' ? seq : undefined };
    each(step, job, after);
    job = after;
  }
}

describe('the transition table', () => {
  it('reaches every status from pending', () => {
    const reached = new Set<JobStatus>(['pending']);
    for (let size = 0; size < reached.size;) {
      size = reached.size;
      for (const status of [...reached]) {
        for (const step of transitions) {
          const next = statusAfter(status, step);
          if (next) reached.add(next);
        }
      }
    }
    expect([...reached].sort()).toEqual([...statuses].sort());
  });

  it('lets only a redrive of a failed job leave an end', () => {
    for (const status of TERMINAL_STATUSES) {
      const ways = transitions.filter((step) => statusAfter(status, step) !== undefined);
      expect(ways).toEqual(status === 'failed' ? ['redrive'] : []);
    }
  });

  it('lets every live job be canceled', () => {
    for (const status of LIVE_STATUSES) expect(statusAfter(status, 'cancel')).toBe('canceled');
  });

  it('runs a job only by a claim, each with a higher claim_seq than any before', () => {
    fc.assert(
      fc.property(walks, (steps) => {
        let highest = 0;
        walk(steps, (step, _before, after) => {
          if (after.status !== 'running') return;
          expect(step).toBe('claim');
          expect(after.claim).toBeGreaterThan(highest);
          highest = after.claim ?? highest;
        });
      }),
    );
  });

  it('leaves the claim of a running job standing only when the execution itself ended it', () => {
    const own: readonly JobTransition[] = ['succeed', 'fail', 'retry', 'snooze'];
    fc.assert(
      fc.property(walks, (steps) => {
        walk(steps, (step, before, after) => {
          if (before.status !== 'running') return;
          expect(after.seq > before.seq).toBe(!own.includes(step));
        });
      }),
    );
  });

  it('charges failures to failures and crashes to crashes, and nothing else to anybody', () => {
    const charged = (charge: string): string[] =>
      transitions.filter((step) => TRANSITIONS[step].charge === charge);
    expect(charged('failure')).toEqual(['fail', 'retry']);
    expect(charged('crash')).toEqual(['rescue', 'exhaust']);
  });
});
