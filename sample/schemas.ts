/** Where the sample keeps its things, so that it can be pointed at any database and leaves no trace elsewhere. */
export const SHOP_SCHEMA = 'sample_shop';
export const ENGINE_SCHEMA = 'sample_ratchet';
