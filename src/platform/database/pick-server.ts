import { startEmbeddedServer } from '../../embedded';
import { findMongod } from './mongod';
import type { PickedServer, Say } from './picked-server';

export interface PickOptions {
  environment: Record<string, string | undefined>;
  say: Say;
}

const DEFAULT_DOWNLOAD_TIMEOUT_MS = 60_000;

/**
 * The database server for tests and trial: the one that is configured, else a real mongod, else the embedded engine.
 * SOROLANE_MONGOD=off passes over mongod; SOROLANE_MONGOD_DOWNLOAD_MS bounds the wait for its download (0: none).
 */
export async function pickServer({ environment, say }: PickOptions): Promise<PickedServer> {
  const passedOver: string[] = [];
  for (const name of ['MONGODB_URI', 'TEST_MONGODB_URI']) {
    const uri = environment[name];
    if (uri !== undefined && uri !== '')
      return {
        engine: 'configured',
        uri,
        description: `the server that ${name} names`,
        passedOver,
        stop: () => Promise.resolve(),
      };
  }
  passedOver.push('configured server: neither MONGODB_URI nor TEST_MONGODB_URI is set');

  const mongod = await startMongod(environment, say);
  if (mongod.kind === 'started') return { ...mongod.server, passedOver };
  passedOver.push(`mongod: ${mongod.reason}`);

  const embedded = await startEmbeddedServer({ port: 0 });
  return {
    engine: 'embedded',
    uri: embedded.uri,
    description: 'the embedded engine (in memory, nothing is kept: for tests and trial)',
    passedOver,
    stop: () => embedded.close(),
  };
}

type MongodStart =
  { kind: 'started'; server: Omit<PickedServer, 'passedOver'> } | { kind: 'unavailable'; reason: string };

async function startMongod(environment: PickOptions['environment'], say: Say): Promise<MongodStart> {
  if (environment['SOROLANE_MONGOD'] === 'off')
    return { kind: 'unavailable', reason: 'SOROLANE_MONGOD is off' };
  try {
    const found = await findMongod({
      searchPath: environment['PATH'] ?? '',
      downloadTimeoutMs: Number(environment['SOROLANE_MONGOD_DOWNLOAD_MS'] ?? DEFAULT_DOWNLOAD_TIMEOUT_MS),
      say,
    });
    if (found.kind === 'missing') return { kind: 'unavailable', reason: found.reason };
    const { MongoMemoryServer } = await import('mongodb-memory-server');
    const server = await MongoMemoryServer.create({ binary: { systemBinary: found.binary } });
    return {
      kind: 'started',
      server: {
        engine: 'mongod',
        uri: server.getUri(),
        description: `a real mongod (${found.origin}: ${found.binary})`,
        stop: async () => {
          await server.stop();
        },
      },
    };
  } catch (error) {
    return {
      kind: 'unavailable',
      reason: `it did not start (${error instanceof Error ? error.message : String(error)})`,
    };
  }
}

/** Which server runs and why not the ones before, in lines for a person. */
export function describePick(picked: PickedServer): string[] {
  return [`Database: ${picked.description}`, ...picked.passedOver.map((reason) => `  not taken: ${reason}`)];
}
