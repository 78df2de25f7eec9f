import { StoreError, type StoreFaultKind } from '../../store-fault.js';

/** What drivers put on their errors: pg itself, and TypeORM's QueryFailedError around it. */
interface DriverError {
  code?: unknown;
  message?: unknown;
  constraint?: unknown;
  kind?: unknown;
  driverError?: unknown;
}

/** The socket could not be opened: the statement was never sent. */
const NOT_CONNECTED = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
]);
/** Refused while connecting: a login, a database, a server that starts or is full. */
const AT_CONNECT = /^(28...|3D000|53300|57P03)$/;
/** What a person can do, where the SQLSTATE knows. */
const MENDS: readonly (readonly [RegExp, string])[] = [
  [/^28...$/, "check the role's login and password"],
  [/^3D000$/, 'create the database, or correct its name'],
  [/^42501$/, 'grant the role what it needs to use the schema'],
  [/^(3F000|42P01|42703|42883)$/, 'check the name of the schema, and that its migrations have been run'],
];
/** The socket was lost on the way. */
const CONNECTION_LOST = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ECONNABORTED', 'ERR_STREAM_DESTROYED']);

/** Exact SQLSTATEs that differ from their class. */
const BY_STATE: Readonly<Record<string, StoreFaultKind>> = {
  '40003': 'unknown',
  '08001': 'unavailable',
  '08004': 'unavailable',
  '08P01': 'fatal',
  '25006': 'unavailable',
  '25P03': 'unknown',
  '25P04': 'unknown',
  '26000': 'rolled_back',
  '55P03': 'unavailable',
  '55006': 'unavailable',
  '57014': 'unavailable',
  '57P03': 'unavailable',
  '58030': 'unavailable',
};

const BY_CLASS: Readonly<Record<string, StoreFaultKind>> = {
  '08': 'unknown',
  '22': 'bad_row',
  '23': 'bad_row',
  '40': 'rolled_back',
  '53': 'unavailable',
  '54': 'bad_row',
  '57': 'unknown',
};

/** What an error of a database driver means. The only place that decides it. */
export function classifyFault(error: unknown): StoreFaultKind {
  const { code, message, constraint, kind } = read(error);
  if (code === 'STORE_FAULT') return kind as StoreFaultKind;
  if (typeof code === 'string') {
    if (NOT_CONNECTED.has(code)) return 'unavailable';
    if (CONNECTION_LOST.has(code)) return 'unknown';
    // A row that fits no partition is a check violation that names no constraint.
    if (code === '23514' && !constraint) return 'missing_partition';
    if (code === '0A000' && /cached plan/.test(message)) return 'rolled_back';
    return BY_STATE[code] ?? (/^[0-9A-Z]{5}$/.test(code) ? BY_CLASS[code.slice(0, 2)] : undefined) ?? 'fatal';
  }
  return byMessage(message);
}

/** pg and its pool report a lost connection without a code. */
function byMessage(message: string): StoreFaultKind {
  if (
    /timeout exceeded when trying to connect|timeout expired|not established|not connected/i.test(message)
  ) {
    return 'unavailable';
  }
  if (/connection terminated|not queryable|client was closed|read timeout|connection error/i.test(message)) {
    return 'unknown';
  }
  return 'fatal';
}

/** The error as a {@link StoreError}, its cause kept; what the store itself says stays as it is. */
export function toStoreError(error: unknown): StoreError {
  const { code, message } = read(error);
  if (code === 'STORE_FAULT' || code === 'STORE_CLOSED') return error as StoreError;
  const kind = classifyFault(error);
  const source = typeof code === 'string' ? code : undefined;
  const mend = MENDS.find(([state]) => state.test(source ?? ''))?.[1];
  return new StoreError(
    kind,
    `STORE_FAULT: ${whatHappened(kind, source)}: ${message}${source === undefined ? '' : ` (${source})`}${mend === undefined ? '' : `; ${mend}`}`,
    source,
    { cause: error },
  );
}

function whatHappened(kind: StoreFaultKind, code: string | undefined): string {
  if (kind === 'unknown') return 'the connection to the database broke';
  if (code === undefined ? kind === 'unavailable' : NOT_CONNECTED.has(code))
    return 'the database cannot be reached';
  return AT_CONNECT.test(code ?? '')
    ? 'the database refused the connection'
    : 'the database refused a statement';
}

function read(error: unknown): { code: unknown; message: string; constraint: unknown; kind: unknown } {
  const outer = (typeof error === 'object' && error !== null ? error : {}) as DriverError;
  const inner = (outer.driverError ?? {}) as DriverError;
  const message = outer.message ?? inner.message;
  return {
    code: outer.code ?? inner.code,
    message: typeof message === 'string' ? message : String(message),
    constraint: outer.constraint ?? inner.constraint,
    kind: outer.kind,
  };
}
