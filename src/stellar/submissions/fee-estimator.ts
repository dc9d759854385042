import { resourceFeeOf } from '../chain/transaction-codec';
import type { ContractCall } from '../contract-value';
import type { Simulator } from '../contract-reader';
import type { FeeClass, FeeEstimate, FeeEstimator } from '../submission';
import type { FeePolicy } from './fee-policy';

/** The figures of the next build: the same simulation, the same bid. */
export class SimulatedFees implements FeeEstimator {
  constructor(
    private readonly simulator: Simulator,
    private readonly fees: FeePolicy,
  ) {}

  async estimate(call: ContractCall, feeClass: FeeClass, signal: AbortSignal): Promise<FeeEstimate> {
    const [{ footprint, auth }, inclusionStroops] = await Promise.all([
      this.simulator.simulate(call, signal),
      this.fees.bid(feeClass, signal),
    ]);
    const resourceStroops = resourceFeeOf({ kind: 'call', call, footprint, auth });
    return { inclusionStroops, resourceStroops };
  }
}
