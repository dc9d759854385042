import { Command, InvalidArgumentError } from 'commander';
import type { EmbeddedServer } from './server';
import { PURPOSE, startEmbeddedServer } from './server';

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new InvalidArgumentError('expected a number from 0 to 65535');
  return port;
}

async function start(port: number): Promise<EmbeddedServer> {
  const logger = { info: console.error, warn: console.error };
  try {
    return await startEmbeddedServer({ port, logger });
  } catch (error) {
    const inUse = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
    console.error(
      inUse ? `Port ${port} is in use by another program; give a different one with --port.` : String(error),
    );
    process.exit(1);
  }
}

async function main(): Promise<void> {
  const program = new Command('embedded')
    .description(`A MongoDB wire-protocol server on 127.0.0.1. ${PURPOSE}`)
    .option('--port <number>', 'the port to listen on; 0 for any that is free', parsePort, 27_017)
    .parse();
  const { port } = program.opts<{ port: number }>();
  const server = await start(port);
  // With a database's name, so that it can be pasted into .env as it is.
  console.log(`MONGODB_URI=${server.uri.replace('/?', '/sorolane?')}`);
  const stop = (): void => {
    void server.close().then(() => process.exit(0));
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
}

void main();
