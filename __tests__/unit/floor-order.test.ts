import path from 'node:path';
import { ESLint } from 'eslint';

const root = path.join(__dirname, '../..');

/** Messages of the floor rule for a file of that name with that import; the file need not exist. */
async function floorProblems(file: string, specifier: string): Promise<string[]> {
  const { floorOrder } = (await import(path.join(root, 'eslint-rules/floor-order.mjs'))) as {
    floorOrder: unknown;
  };
  const eslint = new ESLint({
    cwd: root,
    overrideConfigFile: true,
    overrideConfig: [
      {
        files: ['**/*.ts'],
        plugins: { sorolane: { rules: { 'floor-order': floorOrder } } },
        rules: { 'sorolane/floor-order': 'error' },
      } as never,
    ],
  });
  const [result] = await eslint.lintText(`import '${specifier}';\n`, {
    filePath: path.join(root, 'src', file),
  });
  return result!.messages.map(({ message }) => message);
}

describe('the floor rule', () => {
  test.each([
    ['worker/worker-pool.ts', '../queue/worker-queue'],
    ['verification/steps/mint.ts', '../../stellar/submission'],
    ['composition.ts', './http/app'],
    ['main.ts', './composition'],
    ['queue/sweeper.ts', './envelope'],
    ['cli/demo.ts', '../simnet'],
    ['platform/database/pick-server.ts', '../../embedded'],
    ['simnet/ledger.ts', '../platform/clock'],
  ])('src/%s may import %s', async (file, specifier) => {
    expect(await floorProblems(file, specifier)).toEqual([]);
  });

  test.each([
    ['queue/mongo-worker-queue.ts', '../worker/lane', 'above'],
    ['queue/mongo-worker-queue.ts', '../stellar/submission', 'one floor'],
    ['verification/service.ts', '../randomness/service', 'one floor'],
    ['operations/health.ts', '../http/app', 'above'],
    ['platform/config.ts', '../composition', 'above'],
    ['worker/lane.ts', '../simnet/ledger', 'stand-ins'],
    ['http/app.ts', '../attic/thing', 'no floor'],
  ])('src/%s may not import %s', async (file, specifier, reason) => {
    expect(await floorProblems(file, specifier)).toEqual([expect.stringContaining(reason)]);
  });
});
