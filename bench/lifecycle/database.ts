import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { pickServer } from '../../src/platform/database/pick-server';

export interface BenchServer {
  engine: string;
  uri: string;
  stop(): Promise<void>;
}

/**
 * The database that tests would use; the embedded engine in a process of its own, as anywhere but in tests, so that its
 * work is not measured as ours.
 */
export async function openBenchServer(): Promise<BenchServer> {
  const picked = await pickServer({ environment: process.env, say: (line) => console.error(line) });
  if (picked.engine !== 'embedded') {
    return { engine: picked.engine, uri: picked.uri, stop: () => picked.stop() };
  }
  await picked.stop();
  const child = spawn(
    process.execPath,
    ['--max-old-space-size=8192', '--import', 'tsx', 'src/embedded/cli.ts', '--port', '0'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  for await (const line of createInterface({ input: child.stdout })) {
    const uri = /^MONGODB_URI=(\S+)$/.exec(line)?.[1];
    if (uri === undefined) continue;
    return {
      engine: 'embedded',
      uri,
      stop: async () => {
        child.kill('SIGTERM');
        await once(child, 'exit');
      },
    };
  }
  throw new Error('the embedded engine ended before it listened');
}
