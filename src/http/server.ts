import type { AddressInfo } from 'node:net';
import { createServer, type RequestListener, type Server } from 'node:http';
import { PermanentError } from '../platform/errors';

export interface ListenOptions {
  /** Who listens, for the report that it can't. */
  name: string;
  host: string;
  /** 0 takes a free one. */
  port: number;
  shutdownTimeoutMs: number;
}

export interface RunningServer {
  server: Server;
  /** http://host:port, with the port that was really taken. */
  url: string;
  /** Stops accepting, lets open requests end within the time given, then cuts what is left. */
  close(): Promise<void>;
}

/** @throws PermanentError CANNOT_LISTEN when the address can't be had (taken, not allowed). */
export async function listen(app: RequestListener, options: ListenOptions): Promise<RunningServer> {
  const server = createServer(app);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      const place = `${options.host}:${options.port}`;
      reject(
        new PermanentError('CANNOT_LISTEN', `${options.name} can't listen on ${place}: ${cause.message}`, {
          cause,
        }),
      );
    });
    server.listen(options.port, options.host, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  const host = options.host === '0.0.0.0' || options.host === '::' ? '127.0.0.1' : options.host;
  return {
    server,
    url: `http://${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        const deadline = setTimeout(() => server.closeAllConnections(), options.shutdownTimeoutMs);
        server.close(() => {
          clearTimeout(deadline);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}
