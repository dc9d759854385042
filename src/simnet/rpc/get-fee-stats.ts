import type { RpcMethod } from './rpc-context';

/** Ledgers that the node looks back, as stellar-rpc does by default. */
const classicWindow = 10;
const sorobanWindow = 50;

const percentiles = [10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99];

const distribution = (fees: bigint[], ledgerCount: number) => {
  const sorted = fees.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const at = (percent: number): string =>
    String(sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)] ?? 0n);
  const counts = new Map<bigint, number>();
  for (const fee of sorted) counts.set(fee, (counts.get(fee) ?? 0) + 1);
  const mode = [...counts].reduce<[bigint, number]>(
    (best, entry) => (entry[1] > best[1] ? entry : best),
    [0n, 0],
  );
  return {
    max: String(sorted.at(-1) ?? 0n),
    min: String(sorted[0] ?? 0n),
    mode: String(mode[0]),
    ...Object.fromEntries(percentiles.map((percent) => [`p${percent}`, at(percent)])),
    transactionCount: String(sorted.length),
    ledgerCount,
  };
};

export const getFeeStats: RpcMethod = (_params, { view, ledger }) => {
  const last = (count: number, isSoroban: boolean): bigint[] => {
    const fees: bigint[] = [];
    const latest = view.latest.sequence;
    for (let sequence = latest; sequence > latest - count; sequence -= 1) {
      const transactions = ledger.history.at(sequence)?.transactions ?? [];
      fees.push(
        ...transactions
          .filter((applied) => applied.isSoroban === isSoroban)
          .map(({ inclusionRate }) => inclusionRate),
      );
    }
    return fees;
  };
  return {
    sorobanInclusionFee: distribution(last(sorobanWindow, true), sorobanWindow),
    inclusionFee: distribution(last(classicWindow, false), classicWindow),
    latestLedger: view.latestLedger,
  };
};
