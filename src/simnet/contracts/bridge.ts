import { fromVal, toVal } from '../scval';
import type { SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';

/** The one shape of all events of a bridged contract: bits 0-7 of `flags` name the module, bits 8-15 the action. */
export interface CompactEvent {
  flags: number;
  value: bigint;
  hash: Uint8Array;
}

const compactEvent = fromVal.struct<CompactEvent & Record<string, unknown>>({
  flags: fromVal.u32,
  value: fromVal.u64,
  hash: fromVal.bytesN(32),
});

export const compactEventVal = ({ flags, value, hash }: CompactEvent) =>
  toVal.struct({ flags: toVal.u32(flags), value: toVal.u64(value), hash: toVal.bytes(hash) });

/** Emits compact events: topics (EVENT, LOG), data {flags, hash, value}. */
export const bridgeContract = (admin: string): SimContract => ({
  name: 'bridge',
  initialise: () => undefined,
  functions: {
    log: contractFunction([fromVal.vec(compactEvent)], (context, events) => {
      context.requireAuth(admin);
      for (const event of events) {
        context.emit([toVal.symbol('EVENT'), toVal.symbol('LOG')], compactEventVal(event));
      }
      return toVal.void();
    }),
  },
});
