import { describePick, pickServer } from '../../src/platform/database/pick-server';
import type { PickedServer } from '../../src/platform/database/picked-server';

declare global {
  var sorolaneTestServer: PickedServer | undefined;
}

/** Picks one database server for the whole run and says which; each test file makes a database of its own on it. */
export default async function globalSetup(): Promise<void> {
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const server = await pickServer({ environment: process.env, say });
  describePick(server).forEach(say);
  globalThis.sorolaneTestServer = server;
  process.env['TEST_MONGODB_URI'] = server.uri;
}
