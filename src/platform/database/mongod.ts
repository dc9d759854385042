import { spawn } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import type { Say } from './picked-server';

export type FoundMongod =
  { kind: 'found'; binary: string; origin: string } | { kind: 'missing'; reason: string };

export interface MongodSearch {
  /** Value of PATH. */
  searchPath: string;
  /** 0 never downloads. */
  downloadTimeoutMs: number;
  say: Say;
}

const PROGRESS_INTERVAL_MS = 5_000;

/** A real mongod: on the PATH, in the cache of mongodb-memory-server, or downloaded within the time given. */
export async function findMongod(search: MongodSearch): Promise<FoundMongod> {
  const onPath = await findOnPath(search.searchPath);
  if (onPath !== undefined) return { kind: 'found', binary: onPath, origin: 'found on the PATH' };

  const { DryMongoBinary } = await import('mongodb-memory-server');
  const options = await DryMongoBinary.generateOptions();
  const cached = await DryMongoBinary.locateBinary(options);
  if (cached !== undefined) return { kind: 'found', binary: cached, origin: 'from the cache' };

  if (search.downloadTimeoutMs === 0)
    return { kind: 'missing', reason: 'none on the PATH or in the cache, and downloading is off' };
  return download(options.version, search);
}

async function findOnPath(searchPath: string): Promise<string | undefined> {
  for (const folder of searchPath.split(path.delimiter).filter((part) => part !== '')) {
    const candidate = path.join(folder, 'mongod');
    const executable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (executable) return candidate;
  }
  return undefined;
}

/** In a process of its own, because the downloader can't be cancelled: when time is up the process is killed. */
async function download(version: string, { downloadTimeoutMs, say }: MongodSearch): Promise<FoundMongod> {
  const limit = `${Math.round(downloadTimeoutMs / 1000)} s at most`;
  say(`mongod ${version} is neither on the PATH nor cached: downloading it (${limit})`);
  const script = `require(process.argv[1]).MongoBinary.getPath().then((p) => process.stdout.write(p), (e) => { process.stderr.write(String(e.message)); process.exit(1); })`;
  const child = spawn(process.execPath, ['-e', script, require.resolve('mongodb-memory-server')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let binary = '';
  let complaint = '';
  child.stdout.on('data', (chunk: Buffer) => (binary += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));

  const startedAt = Date.now();
  const progress = setInterval(() => {
    say(`still downloading mongod, ${Math.round((Date.now() - startedAt) / 1000)} s of ${limit}`);
  }, PROGRESS_INTERVAL_MS);
  const abandoned = new AbortController();
  const deadline = setTimeout(() => {
    abandoned.abort();
    child.kill('SIGKILL');
  }, downloadTimeoutMs);
  const exitCode = await new Promise<number | null>((resolve) => child.on('close', resolve));
  clearInterval(progress);
  clearTimeout(deadline);

  if (exitCode === 0 && binary !== '') return { kind: 'found', binary, origin: 'downloaded' };
  if (abandoned.signal.aborted)
    return { kind: 'missing', reason: `its download did not end within ${limit}` };
  return {
    kind: 'missing',
    reason: `its download failed (${oneLine(complaint) || `exit code ${exitCode}`})`,
  };
}

/** The downloader puts the cause on the lines behind the first. */
const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, 300);
