/** The core module's own tokens. None is exported: what users inject are classes. */
export const RESOLVED_OPTIONS = Symbol('ratchet: resolved options');
export const DATABASE = Symbol('ratchet: database');
/** The JobStore once it is open: migrated, so that whatever injects what depends on it can be used from any hook. */
export const OPEN_STORE = Symbol('ratchet: open store');
export const NODE_ID = Symbol('ratchet: node id');
/** What the runtime is made of: the test kit makes another one of it. */
export const ENGINE_PARTS = Symbol('ratchet: engine parts');
