import { spawn, type ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** One of this project's programs as a process of its own. */
export interface Program {
  child: ChildProcess;
  stdout: () => string;
  ended: Promise<Ended>;
  /** Resolves once stdout holds a match; rejects when the program ends before that. */
  says: (pattern: RegExp) => Promise<RegExpMatchArray>;
}

const running = new Set<ChildProcess>();

export interface ProgramOptions {
  arguments?: string[];
  environment?: Record<string, string>;
  /** In a process group of its own, as a shell starts it: a signal to `-pid` reaches whatever it started in that group. */
  ownGroup?: boolean;
}

/** `entry` is relative to src/. Only the variables given here are set, and no .env is read. */
export function startProgram(entry: string, options: ProgramOptions = {}): Program {
  const file = path.join(__dirname, '../../src', entry);
  const child = spawn(
    process.execPath,
    ['--import', `file://${require.resolve('tsx')}`, file, ...(options.arguments ?? [])],
    {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...options.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: options.ownGroup ?? false,
    },
  );
  running.add(child);
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    for (const listener of listeners) listener();
  });
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => {
      running.delete(child);
      resolve({ code, signal, stdout, stderr });
    });
  });
  return {
    child,
    stdout: () => stdout,
    ended,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout);
          if (match === null) return;
          listeners.delete(look);
          resolve(match);
        };
        listeners.add(look);
        void ended.then((end) =>
          reject(new Error(`ended with ${end.code} before it said ${pattern}: ${end.stderr}${end.stdout}`)),
        );
        look();
      }),
  };
}

/** For afterAll: nothing that a test started outlives it. */
export async function killPrograms(): Promise<void> {
  await Promise.all(
    [...running].map((child) => {
      const gone = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGKILL');
      return gone;
    }),
  );
}
