import { DataSource } from 'typeorm';
import { DataSource as DataSource03 } from 'typeorm-03';

/** Both lines of TypeORM that users may have, in one process. */
export const TYPEORM_VERSIONS = [
  { version: '1.x', make: (url: string) => new DataSource({ type: 'postgres', url, extra: { max: 6 } }) },
  {
    version: '0.3',
    // Their types are strangers to each other; what we use of them is the same.
    make: (url: string) =>
      new DataSource03({ type: 'postgres', url, extra: { max: 6 } }) as unknown as DataSource,
  },
] as const;
