import fc from 'fast-check';
import { parseFaultPlan } from '../../../src/simnet/fault-rules';
import { FaultEngine } from '../../../src/simnet/faults';

const fates = (engine: FaultEngine, endpoint: number, calls: number): string[] =>
  Array.from(
    { length: calls },
    () => engine.next({ surface: 'rpc', endpoint, method: 'getHealth' })?.kind ?? 'none',
  );

describe('FaultEngine', () => {
  it('gives the n-th call of an endpoint the same fate in every run, whatever other endpoints are asked', () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 60 }),
        (seed, noise) => {
          const [alone, among] = [new FaultEngine(), new FaultEngine()];
          alone.set({ rate: 0.3, seed });
          among.set({ rate: 0.3, seed });
          const mixed: string[] = [];
          for (let call = 0; call < 40; call += 1) {
            fates(among, noise[call] ?? 1, 1);
            mixed.push(...fates(among, 0, 1));
          }
          expect(mixed).toEqual(fates(alone, 0, 40));
        },
      ),
      { numRuns: 30 },
    );
  });

  it('strikes about as often as the rate says, with every kind', () => {
    const engine = new FaultEngine();
    engine.set({ rate: 0.3, seed: 7 });
    const struck = fates(engine, 0, 4000).filter((kind) => kind !== 'none');
    expect(struck.length / 4000).toBeGreaterThan(0.27);
    expect(struck.length / 4000).toBeLessThan(0.33);
    expect(new Set(struck)).toEqual(
      new Set(['latency', 'timeoutBefore', 'timeoutAfter', 'dropBefore', 'dropReply', 'httpStatus']),
    );
  });

  it('differs between seeds and between endpoints', () => {
    const [one, two] = [new FaultEngine(), new FaultEngine()];
    one.set({ rate: 0.5, seed: 1 });
    two.set({ rate: 0.5, seed: 2 });
    const first = fates(one, 0, 50);
    expect(fates(two, 0, 50)).not.toEqual(first);
    expect(fates(one, 1, 50)).not.toEqual(first);
  });

  it('starts again when the plan is set', () => {
    const engine = new FaultEngine();
    engine.set({ rules: [{ times: 1, fault: { kind: 'dropReply' } }] });
    expect(fates(engine, 0, 2)).toEqual(['dropReply', 'none']);
    engine.set({ rules: [{ times: 1, fault: { kind: 'dropReply' } }] });
    expect(fates(engine, 0, 2)).toEqual(['dropReply', 'none']);
  });
});

describe('parseFaultPlan', () => {
  it('reads presets, rules and whole plans', () => {
    expect(parseFaultPlan('rate=0.3, seed=7')).toMatchObject({ rate: 0.3, seed: 7, rules: [] });
    expect(parseFaultPlan('[{"fault":{"kind":"lag","ledgers":5}}]').rules[0]).toMatchObject({
      surface: 'rpc',
    });
    expect(parseFaultPlan('{"rate":0.1,"rules":[]}')).toMatchObject({ rate: 0.1, seed: 1 });
  });

  it.each(['rate=2', 'speed=3', 'rate', '{"rules":[{"fault":{"kind":"gremlin"}}]}', '{', '{"rats":1}'])(
    'refuses %s',
    (text) => {
      expect(() => parseFaultPlan(text)).toThrow();
    },
  );
});
