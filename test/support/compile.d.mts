/** A change to one compiled file, for negative controls: what breaks when this line is not there? */
export interface Mutation {
  /** The file's path ends so. */
  readonly file: string;
  readonly from: string | RegExp;
  readonly to: string;
}

/** Transpiles a folder for processes that know no jest, as it is or broken on purpose. */
export function compileFolder(from: string, to: string, mutations?: readonly Mutation[]): void;
