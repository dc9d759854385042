import { readCompactEvent } from '../../../src/ingestion/compact-event';
import { decodeEvent, fieldOf } from '../../../src/ingestion/event-decoder';
import type { ContractEvent } from '../../../src/ingestion/event-handler';
import { eventToJson } from '../../../src/ingestion/event-json';
import type { RawEvent } from '../../../src/ingestion/event-source';
import { compileTopicPattern, topicNames } from '../../../src/ingestion/topic-pattern';
import { contractValue, type ContractValue } from '../../../src/stellar/contract-value';
import { decodeContractValue } from '../../../src/stellar/scval-codec';
import recorded from '../../fixtures/ingestion/recorded-events.json';
import { makeEvent } from '../../support/ingestion-chain';

describe('recorded events', () => {
  it('decode to what the network meant', () => {
    const [event] = recorded.events.map((raw) => decodeEvent(raw as RawEvent, decodeContractValue));
    expect(eventToJson(event!)).toMatchObject({
      id: '0016010972359577600-0000000001',
      ledger: 3_727_845,
      ledgerClosedAt: '2026-07-21T18:01:10.000Z',
      topics: ['transfer', expect.stringMatching(/^G/), expect.stringMatching(/^C/), 'native'],
      value: '3000000000',
    });
    expect(event!.identity).toBe(`3727845:${event!.transactionHash}:1`);
  });
});

describe('topic patterns', () => {
  const names = (...topics: string[]) => topicNames(topics.map((topic) => contractValue.symbol(topic)));

  it.each([
    ['certificate_minted', ['certificate_minted'], true],
    ['certificateminted', ['CertificateMinted'], true],
    ['certificate_minted', ['certificate_minted', 'more'], true],
    ['certificate_minted', ['other', 'certificate_minted'], false],
    ['*/certificate_minted', ['other', 'certificate_minted'], true],
    ['tikka/draw_triggered', ['tikka', 'draw_triggered'], true],
    ['tikka/draw_triggered', ['tikka'], false],
    ['EVENT/LOG', ['EVENT', 'LOG'], true],
    ['*', [], true],
  ])('%s on %j: %s', (pattern, topics, expected) => {
    expect(compileTopicPattern(pattern)(names(...topics))).toBe(expected);
  });

  it('refuse an empty segment', () => {
    expect(() => compileTopicPattern('a//b')).toThrow(RangeError);
  });

  it('never take a value for a name', () => {
    expect(compileTopicPattern('u32')(topicNames([contractValue.u32(1)]))).toBe(false);
  });
});

describe('compact events', () => {
  const hash = new Uint8Array(32).fill(7);
  const event = (value: ContractValue, topics = ['EVENT', 'LOG']): ContractEvent => ({
    ...decodeEvent(makeEvent({ ledger: 1 }), decodeContractValue),
    topics: topics.map((topic) => contractValue.symbol(topic)),
    value,
  });
  const data = (flags: number) =>
    contractValue.struct({
      flags: contractValue.u32(flags),
      value: contractValue.u64(42n),
      hash: contractValue.bytes(hash),
    });

  it('carry module and action in their flags', () => {
    expect(readCompactEvent(event(data(3 | (1 << 8))))).toEqual({
      kind: 'compact',
      module: 'TREASURY',
      action: 1,
      flags: 259,
      value: 42n,
      hash,
    });
    expect(readCompactEvent(event(data(9 | (14 << 8))))).toMatchObject({ module: 'UPGRADE', action: 14 });
  });

  it.each([
    ['an unknown module', data(10 | (1 << 8))],
    ['no module', data(1 << 8)],
    ['an unknown action', data(1 | (15 << 8))],
    ['no fields', contractValue.u32(1)],
  ])('with %s are malformed', (_, value) => {
    expect(readCompactEvent(event(value))).toMatchObject({ kind: 'malformed' });
  });

  it('are told from other formats by their topics', () => {
    expect(readCompactEvent(event(data(257), ['transfer']))).toEqual({ kind: 'other_format' });
  });

  it('fields are found by name in any spelling', () => {
    expect(fieldOf(contractValue.struct({ request_id: contractValue.u64(1n) }), 'requestId')).toEqual({
      type: 'u64',
      value: 1n,
    });
    expect(fieldOf(contractValue.u32(1), 'requestId')).toBeUndefined();
  });
});
