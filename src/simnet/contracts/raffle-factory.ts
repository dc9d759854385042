import { fromVal, toVal } from '../scval';
import type { SimContract } from './sim-contract';
import { contractFunction } from './sim-contract';

/** Tells of raffles that are contracts of their own. On a real network it deploys them as well; here that is done for it. */
export const raffleFactoryContract = (admin: string): SimContract => ({
  name: 'raffle-factory',
  initialise: () => undefined,
  functions: {
    announce: contractFunction([fromVal.vec(fromVal.address)], (context, raffles) => {
      context.requireAuth(admin);
      for (const raffle of raffles) {
        context.emit([toVal.symbol('raffle_created')], toVal.struct({ raffle_id: toVal.address(raffle) }));
      }
      return toVal.void();
    }),
  },
});
