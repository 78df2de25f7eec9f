/**
 * Set at connect on the engine's own connections, so that every hot statement has one shape from the first row to the
 * millionth: a plan made on a young table otherwise costs 50 to 800 ms a turn until somebody analyzes.
 */
export const PLAN_SETTINGS: Readonly<Record<string, string>> = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_bitmapscan: 'off',
  enable_material: 'off',
  enable_memoize: 'off',
  enable_incremental_sort: 'off',
  jit: 'off',
};
