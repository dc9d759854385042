import { canonicalHash } from '../../../src/verification/canonical-hash';
import { parseManifest } from '../../../src/verification/spv/manifest';

const creator = 'GAAZI4TCR3TY5OJHCTJC2A4QSY6CJWJH5IAJTGKIN2ER7LBNVKOCCWN7';
const hash = 'ab'.repeat(32);
const parse = (document: unknown) => parseManifest(Buffer.from(JSON.stringify(document)));

describe('a manifest', () => {
  it.each([hash, hash.toUpperCase(), `sha256:${hash}`, `sha256:${hash.toUpperCase()}`])(
    'names its media by hash, as %s',
    (contentHash) => {
      expect(parse({ contentHash, creator, title: 'more' })).toMatchObject({
        kind: 'parsed',
        manifest: { contentHash: hash, creator },
      });
    },
  );

  it.each([
    ['contentHash', { creator }],
    ['contentHash', { contentHash: `sha512:${hash}`, creator }],
    ['contentHash', { contentHash: hash.slice(1), creator }],
    ['creator', { contentHash: hash }],
    ['creator', { contentHash: hash, creator: 'somebody' }],
    ['manifest', [hash]],
    ['manifest', null],
  ])('says which field is wrong: %s', (field, document) => {
    const parsed = parse(document);
    expect(parsed.kind === 'bad_field' && parsed.problem).toContain(`${field}:`);
  });

  it.each([
    ['text', Buffer.from('not json')],
    ['nothing', Buffer.alloc(0)],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('is not JSON: %s', (_what, bytes) => {
    expect(parseManifest(bytes)).toEqual({ kind: 'not_json' });
  });

  const whole = `"contentHash":"${hash}","creator":"${creator}"`;

  it.each([
    ['a repeated key', `{${whole},"creator":"${creator}"}`, 'twice'],
    ['a key repeated in another spelling', `{${whole},"\\u0063reator":"${creator}"}`, 'twice'],
    ['a key repeated further in', `{${whole},"a":[{"b":1,"c":{"b":1},"b":2}]}`, 'twice'],
    ['__proto__ twice', `{${whole},"__proto__":1,"__proto__":2}`, 'twice'],
    ['half a surrogate pair', `{${whole},"a":"\\ud83d"}`, 'surrogate'],
    ['a number beyond a double', `{${whole},"a":-1e999}`, 'too large'],
    [
      'more levels than any reader can bear',
      `{${whole},"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`,
      'deeper',
    ],
  ])('that another reader could read otherwise is refused: %s', (_what, text, problem) => {
    const parsed = parseManifest(Buffer.from(text));
    expect(parsed.kind).toBe('ambiguous');
    expect(parsed.kind === 'ambiguous' && parsed.problem).toContain(problem);
  });

  it.each([
    ['one key in two objects, and as a value', `{${whole},"a":{"a":"a"},"b":["a","a",{"a":[]}]}`],
    ['brackets, commas and escapes in strings', `{${whole},"a":"{[,\\"]}","b":"\\\\","c":"[,"}`],
    ['a whole surrogate pair', `{${whole},"a":"\\ud83d\\ude00 😀"}`],
    ['numbers of every form', `{${whole},"a":[-0,1.5e-9,1E+3,-12]}`],
    ['a key that is __proto__', `{${whole},"__proto__":{"creator":"x"}}`],
  ])('is read in spite of %s', (_what, text) => {
    expect(parseManifest(Buffer.from(text))).toMatchObject({ kind: 'parsed', manifest: { creator } });
  });

  it('has one canonical hash however it is spaced and ordered', () => {
    const spaced = parseManifest(
      Buffer.from(`{ "creator": "${creator}",\n "contentHash": "${hash}", "b": {"y": 1, "x": [2, 1]} }`),
    );
    const dense = parse({ b: { x: [2, 1], y: 1 }, contentHash: hash, creator });
    expect(spaced.kind === 'parsed' && spaced.canonicalManifestHash).toBe(
      dense.kind === 'parsed' && dense.canonicalManifestHash,
    );
  });

  it('is hashed by RFC 8785', () => {
    expect(canonicalHash({ b: 1, a: 'é' })).toBe(
      // SHA-256 of {"a":"é","b":1} in UTF-8
      'aa58fba8483623bed37c1b02edfccbdd9a53123837c20bfa4cb4049993a2872e',
    );
  });
});
