import { InvalidOptionError } from '../errors/boot-errors.js';
import { ScheduleStore } from './schedule-store.js';

/**
 * Stands in where a `jobStore` of the app's own comes without a `scheduleStore`: an app without recurring schedules needs none, and
 * one with them is told at the first question. Does nothing else.
 */
export class MissingScheduleStore extends ScheduleStore {
  override now = refuse;
  override byIds = refuse;
  override list = refuse;
  override write = refuse;
  override mark = refuse;
  override delete = refuse;
  override due = refuse;
  override fire = refuse;
  override promote = refuse;
  override trigger = refuse;
  override occurrences = refuse;
  override sweep = refuse;
  override forget = refuse;
}

function refuse(): Promise<never> {
  const problem =
    'is not given, and the one for PostgreSQL needs its jobStore; recurring schedules need a scheduleStore too';
  return Promise.reject(new InvalidOptionError([{ option: 'scheduleStore', problem }]));
}
