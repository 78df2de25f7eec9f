const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Whether it can be a job's id at all. What cannot is nobody's, and is not worth a question to the database. */
export function isUuid(id: unknown): id is string {
  return typeof id === 'string' && UUID.test(id);
}
