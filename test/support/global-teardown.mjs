export default async function teardown() {
  await globalThis.__RATCHET_STOP__?.();
}
