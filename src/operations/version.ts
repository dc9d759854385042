import { readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';

const packageSchema = z.object({ version: z.string() });

/** Of this program, as its package says; src/ and dist/ lie at the same depth. */
export function readVersion(): string {
  const file = path.join(__dirname, '../../package.json');
  return packageSchema.parse(JSON.parse(readFileSync(file, 'utf8'))).version;
}
