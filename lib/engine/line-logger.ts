/** What the engine says to people. */
export interface LineLogger {
  /** Steps that people look at when something is wrong. */
  debug?(message: string): void;
  log(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

/** The application's logger, made unable to throw: one that fails must not stop a bucket, a drain, or the process. */
export function guardedLogger(logger: LineLogger): Required<LineLogger> {
  const say =
    (level: keyof LineLogger) =>
    (message: string): void => {
      try {
        logger[level]?.(message);
      } catch {
        // There is nobody left to tell.
      }
    };
  return { debug: say('debug'), log: say('log'), warn: say('warn'), error: say('error') };
}
