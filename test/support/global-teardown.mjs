export default async function teardown() {
  await globalThis.__RATCHET_EMBEDDED__?.stop();
}
