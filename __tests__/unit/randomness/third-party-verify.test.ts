import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import vectors from '../../fixtures/randomness/vectors.json';

/** The program that docs/randomness.md gives to people who trust none of ours. */
const directory = mkdtempSync(join(tmpdir(), 'sorolane-verify-'));
const program = join(directory, 'verify.mjs');
beforeAll(() => {
  const docs = readFileSync('docs/randomness.md', 'utf8');
  writeFileSync(program, /```js\n(\/\/ node verify\.mjs[^]*?)```/.exec(docs)![1]!);
});
afterAll(() => rmSync(directory, { recursive: true }));

function verdict(
  { requestId, raffleId, version, vrf }: (typeof vectors.randomness)[number],
  seed = vrf.seed,
) {
  const raffle = raffleId === null ? '-' : String(raffleId);
  const bound = version === 2 ? [vectors.networkPassphrase, vectors.contractId] : [];
  const claim = [vectors.publicKey, requestId, raffle, vrf.proof, seed, ...bound];
  return execFileSync(process.execPath, [program, ...claim], { encoding: 'utf8' }).trim();
}

test.each(vectors.randomness.slice(0, 6))('checks request $requestId of version $version', (vector) => {
  expect(verdict(vector)).toBe('valid');
});

it('takes no other seed and no other raffle', () => {
  const [vector] = vectors.randomness;
  expect(verdict(vector!, 'ab'.repeat(32))).toBe('NOT valid');
  expect(verdict({ ...vector!, raffleId: 457 })).toBe('NOT valid');
});
