import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Engine } from './commands/request';
import { CursorRegistry } from './cursors';
import { Dispatcher } from './dispatcher';
import { FailPoints } from './fail-points';
import { Store } from './storage/store';
import { startTtlSweeper } from './ttl-sweeper';
import type { ConnectionLogger } from './wire/connection';
import { Connection } from './wire/connection';

/** There are no users and no passwords, so nobody else may reach it. */
const LOOPBACK = '127.0.0.1';

export const PURPOSE =
  'The embedded engine keeps everything in memory and nothing on disk: it is for tests and trial only.';

export interface EmbeddedServer {
  readonly uri: string;
  readonly port: number;
  /** Ends all connections; what was stored is gone. */
  close(): Promise<void>;
}

export interface EmbeddedServerOptions {
  /** 0, the default, for any that is free. */
  readonly port?: number;
  readonly logger?: ConnectionLogger;
}

const silent: ConnectionLogger = { info: () => undefined, warn: () => undefined };

/**
 * Starts a server in this process that speaks MongoDB's wire protocol on the loopback interface.
 * @throws Error with the code EADDRINUSE when the port is taken
 */
export async function startEmbeddedServer({
  port = 0,
  logger = silent,
}: EmbeddedServerOptions = {}): Promise<EmbeddedServer> {
  const sockets = new Set<Socket>();
  const engine: Engine = {
    store: new Store(),
    cursors: new CursorRegistry(),
    failPoints: new FailPoints(),
    startedAtMs: Date.now(),
    commandCounts: new Map(),
    openConnections: () => sockets.size,
  };
  const dispatcher = new Dispatcher(engine, (error, command) =>
    logger.warn(
      `'${command}' failed unexpectedly: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    ),
  );
  let lastConnectionId = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    new Connection(++lastConnectionId, socket, dispatcher, logger);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, LOOPBACK, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  const listening = typeof address === 'object' && address !== null ? address.port : port;
  const stopSweeper = startTtlSweeper(engine.store);
  const uri = `mongodb://${LOOPBACK}:${listening}/?directConnection=true`;
  logger.info(`Embedded engine listening on ${LOOPBACK}:${listening}. ${PURPOSE}`);
  return {
    uri,
    port: listening,
    close: () => {
      stopSweeper();
      return new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      });
    },
  };
}
