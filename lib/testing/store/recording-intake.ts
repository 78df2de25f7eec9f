import { Intake, type Submitted } from '../../intake/intake.js';
import { type Buffered } from '../../intake/save-buffer.js';
import { type NewJob } from '../../store/job-store.js';

/** Remembers the ids of what came in, so that the tester can ask the store what became of it. */
export class RecordingIntake extends Intake {
  readonly #ids = new Set<string>();

  /** In the order of the calls. Some may never have been committed. */
  get ids(): readonly string[] {
    return [...this.#ids].sort();
  }

  override async submit(making: Promise<NewJob>, transaction?: unknown): Promise<Submitted> {
    const inserted = await super.submit(making, transaction);
    this.#record([inserted]);
    return inserted;
  }

  override async submitMany(
    making: Promise<readonly NewJob[]>,
    transaction?: unknown,
  ): Promise<readonly Submitted[]> {
    const inserted = await super.submitMany(making, transaction);
    this.#record(inserted);
    return inserted;
  }

  /** Saved at once, so that a test need not wait for what it is about to run; what is wrong with a job it hears by `saved`. */
  override async submitBuffered(making: Promise<readonly NewJob[]>): Promise<Buffered> {
    const buffered = await super.submitBuffered(making);
    await buffered.saved.then(
      async () => this.#record((await making).map(({ id }) => ({ outcome: 'created', id }))),
      () => undefined,
    );
    return buffered;
  }

  /** One that came in another way. */
  note(id: string): void {
    this.#ids.add(id);
  }

  #record(all: readonly Submitted[]): void {
    for (const inserted of all) if ('id' in inserted) this.#ids.add(inserted.id);
  }
}
