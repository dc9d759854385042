import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

export interface ProcessOptions {
  /** Also the name of its log file. */
  name: string;
  environment: Record<string, string>;
  logFolder: string;
}

/** One real process of the house, its log in a file of its own. */
export interface DemoProcess {
  name: string;
  pid: number;
  logFile: string;
  exited: Promise<number | null>;
  hasExited(): boolean;
  /** SIGTERM: drains and goes. */
  stop(): Promise<void>;
  /** SIGKILL: gone between two instructions. */
  kill(): Promise<void>;
}

/**
 * Run in each process before its program: it goes when this one goes, however that ended (its end of the pipe closes even on
 * SIGKILL), and leaves no worker behind without network and database.
 */
const GO_WITH_PARENT = `data:text/javascript,${encodeURIComponent(
  'process.stdin.on("end", () => process.exit(1)).resume()',
)}`;

/** This very program's entry: compiled beside compiled code, TypeScript (through tsx) beside TypeScript. */
function entry(): string[] {
  const isCompiled = __filename.endsWith('.js');
  const main = path.join(__dirname, '../../', isCompiled ? 'main.js' : 'main.ts');
  // By its full address: the process runs in another folder, so that no .env of the caller's is read.
  return isCompiled ? [main] : ['--import', pathToFileURL(require.resolve('tsx')).href, main];
}

export function startProcess({ name, environment, logFolder }: ProcessOptions): DemoProcess {
  const logFile = path.join(logFolder, `${name}.log`);
  const log = createWriteStream(logFile, { flags: 'a' });
  // Only what a process needs to run, so that a variable of the caller's shell can't change what the demo shows.
  const base = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    TMPDIR: process.env['TMPDIR'] ?? '',
  };
  const child: ChildProcess = spawn(process.execPath, ['--import', GO_WITH_PARENT, ...entry()], {
    cwd: logFolder,
    env: { ...base, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A group of its own: a terminal sends Ctrl-C to the whole group, and with our SIGTERM that would be two signals.
    detached: true,
  });
  child.stdout?.pipe(log, { end: false });
  child.stderr?.pipe(log, { end: false });
  let gone = false;
  const exited = new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', (code) => resolve(code));
  }).then((code) => {
    gone = true;
    log.end();
    return code;
  });
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (!gone) child.kill(signal);
    await exited;
  };
  return {
    name,
    pid: child.pid ?? -1,
    logFile,
    exited,
    hasExited: () => gone,
    stop: () => end('SIGTERM'),
    kill: () => end('SIGKILL'),
  };
}
