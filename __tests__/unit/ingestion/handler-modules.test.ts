import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadHandlerModules } from '../../../src/ingestion/handler-modules';

describe('handlers in files of their own', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'sorolane-handlers-'));
  const write = (name: string, source: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, source);
    return file;
  };
  afterAll(() => rmSync(folder, { recursive: true }));

  test('are loaded with their defaults', async () => {
    const file = write(
      'mine.js',
      `exports.eventHandlers = [{ name: 'mine', topics: ['transfer'], concurrency: 1, priority: 'low', handle: async () => undefined }];`,
    );
    expect(await loadHandlerModules([file])).toMatchObject([
      { name: 'mine', topics: ['transfer'], batch: 1, ordered: false },
    ]);
  });

  test.each([
    ['a module that is not there', () => path.join(folder, 'nowhere.js'), 'nowhere.js'],
    [
      'one that exports nothing of the kind',
      () => write('other.js', 'exports.handlers = [];'),
      'eventHandlers',
    ],
    [
      'a handler without a function',
      () => write('hollow.js', `exports.eventHandlers = [{ name: 'x' }];`),
      'handle',
    ],
    [
      'a handler that could never work',
      () =>
        write(
          'mute.js',
          `exports.eventHandlers = [{ name: 'x', topics: [], concurrency: 1, priority: 'low', handle() {} }];`,
        ),
      'names no topics',
    ],
  ])('%s is refused with its name and the reason', async (_, file, reason) => {
    await expect(loadHandlerModules([file()])).rejects.toMatchObject({
      code: 'HANDLER_MODULE',
      message: expect.stringContaining(reason) as string,
    });
  });
});
