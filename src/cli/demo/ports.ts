import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/** A port that was free a moment ago. */
export const freePort = (): Promise<number> => tryPort(0);

/** Why the API could not listen there; null where it could. Whoever has the port already would be taken for our API. */
export async function portProblem(port: number): Promise<string | null> {
  if (port === 0) return null;
  try {
    await tryPort(port);
    return null;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return code === 'EADDRINUSE'
      ? `Port ${port} is in use; give another with --port.`
      : `Port ${port} can't be had (${code}); give another with --port.`;
  }
}

function tryPort(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      server.close(() =>
        typeof address === 'object' && address !== null
          ? resolve(address.port)
          : reject(new Error('no free port')),
      );
    });
  });
}
