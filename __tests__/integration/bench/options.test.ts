import { execFile } from 'node:child_process';

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** All share their command line; this one used to run for minutes whatever it was told. */
const bench = (...args: string[]): Promise<Ended> =>
  new Promise((resolve) => {
    execFile(
      process.execPath,
      ['--import', 'tsx', 'bench/lifecycle.ts', ...args],
      { timeout: 20_000 },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });

it('a benchmark measures nothing when it is told what it does not understand', async () => {
  const { code, stdout, stderr } = await bench('--jobs', 'abc');
  expect(code).toBe(1);
  expect(stdout).toBe('');
  expect(stderr).toContain('expected a whole number from 1 to 10000000');
});
