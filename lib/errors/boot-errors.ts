import { RatchetError } from './ratchet-error.js';

/** One thing that is wrong with an option. */
export interface OptionProblem {
  /** The path of the option: `lanes.mail.concurrency`. */
  readonly option: string;
  /** What is wrong and what is allowed. */
  readonly problem: string;
}

/** Options of the module that cannot be right. Lists everything that is wrong at once. */
export class InvalidOptionError extends RatchetError {
  override readonly code = 'INVALID_OPTION';

  constructor(
    readonly problems: readonly OptionProblem[],
    options?: { cause?: unknown },
  ) {
    const lines = problems.map(({ option, problem }) => `RatchetModule: ${option}: ${problem}`);
    super(`INVALID_OPTION: ${lines.join('\n  and ')}`, options);
  }
}

/** `forRoot` or `forRootAsync` was called twice for one application: that would be two engines. */
export class ModuleImportedTwiceError extends RatchetError {
  override readonly code = 'MODULE_IMPORTED_TWICE';

  constructor(count: number) {
    super(
      `MODULE_IMPORTED_TWICE: RatchetModule: forRoot was called ${count} times for this application, which would be ${count} engines; ` +
        `call it once, in the root module (other modules inject JobScheduler without importing anything), or share the one object that it returned`,
    );
  }
}

/** Two copies of the package in one process: their classes are different injection tokens. */
export class PackageLoadedTwiceError extends RatchetError {
  override readonly code = 'PACKAGE_LOADED_TWICE';

  constructor(copies: readonly string[]) {
    super(
      `PACKAGE_LOADED_TWICE: nestjs-ratchet: this process has loaded ${copies.length} copies (${copies.join(', ')}), whose classes ` +
        `do not know each other; keep one (npm ls nestjs-ratchet shows who asks for which)`,
    );
  }
}

/** A module of the app provides something that only RatchetModule can provide: Nest would silently ignore it. */
export class PortOutsideModuleError extends RatchetError {
  override readonly code = 'PORT_OUTSIDE_MODULE';

  constructor(port: string, moduleName: string, option: string | undefined) {
    const mend = option
      ? `pass it as \`RatchetModule.forRoot({ ${option}: … })\` instead (with \`imports\` for what it injects)`
      : `remove it there: RatchetModule provides and exports it`;
    super(`PORT_OUTSIDE_MODULE: ${moduleName}: provides ${port}, which the engine would never see; ${mend}`);
  }
}

/** The app has no such DataSource. */
export class DataSourceNotFoundError extends RatchetError {
  override readonly code = 'DATA_SOURCE_NOT_FOUND';

  constructor(asked: string, tried: readonly string[], known: readonly string[]) {
    const have = known.length > 0 ? `the app provides ${known.join(', ')}` : 'the app provides none';
    super(
      `DATA_SOURCE_NOT_FOUND: RatchetModule: dataSource: ${asked} is not provided by any module (looked for ${tried.join(', ')}; ${have}); ` +
        `import TypeOrmModule.forRoot(…), give its name or its injection token, or use \`connection\` instead`,
    );
  }
}

/** What was given as DataSource is none, or not ready. */
export class DataSourceUnfitError extends RatchetError {
  override readonly code = 'DATA_SOURCE_UNFIT';

  constructor(asked: string, what: string) {
    super(`DATA_SOURCE_UNFIT: RatchetModule: dataSource: ${asked} is ${what}`);
  }
}
