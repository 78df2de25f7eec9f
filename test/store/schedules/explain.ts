import type pg from 'pg';
import { type Statement } from '../../../lib/store/sql-client.js';

export interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: Plan[];
}

export interface Explained {
  readonly nodes: readonly Plan[];
  readonly blocks: number;
}

const literal = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `array[${value.map(literal).join(', ')}]::text[]`;
  return `'${(value as string | number).toString().replaceAll("'", "''")}'`;
};

/** Prepares a statement as a node does that has just started. */
export async function prepare(client: pg.Client, { name, text }: Statement, types: string): Promise<void> {
  await client.query(`prepare "${name!}" (${types}) as ${text}`);
}

/** Runs a prepared statement, and takes back what it did. */
export async function explain(
  client: pg.Client,
  name: string,
  parameters: unknown[],
  begin = 'begin',
  end = 'rollback',
): Promise<Explained> {
  await client.query(begin);
  const { rows } = await client.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
    `explain (analyze, buffers, format json) execute "${name}"(${parameters.map(literal).join(', ')})`,
  );
  await client.query(end);
  const top = rows[0]!['QUERY PLAN'][0]!.Plan;
  const nodes: Plan[] = [];
  const walk = (plan: Plan): void => {
    nodes.push(plan);
    plan.Plans?.forEach(walk);
  };
  walk(top);
  return { nodes, blocks: (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0) };
}

/** The nodes that read a table. */
export const reads = ({ nodes }: Explained, table: string): Plan[] =>
  nodes.filter((node) => node['Relation Name'] === table && node['Node Type'] !== 'ModifyTable');

/** Rows that a node has read in all. */
export const rowsOf = (node: Plan): number =>
  ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1);
