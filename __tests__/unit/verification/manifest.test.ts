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
