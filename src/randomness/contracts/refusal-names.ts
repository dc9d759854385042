/** What both raffle contracts call their errors, by the published enum; of some also where an operator is to look. */
const refusals: Readonly<Record<number, { name: string; hint?: string }>> = {
  5: {
    name: 'NotAuthorized',
    hint: 'account or key are not those of the oracle that it knows: see STELLAR_ORACLE_SECRET_KEY and ORACLE_SECRET_KEY',
  },
  6: { name: 'OracleNotSet', hint: 'the contract was told of no oracle yet' },
  7: { name: 'RandomnessAlreadyRequested' },
  8: { name: 'NoRandomnessRequest' },
  9: { name: 'FallbackTooEarly' },
  21: {
    name: 'InvalidParameters',
    hint: 'it did not take this key or proof: see STELLAR_ORACLE_SECRET_KEY and ORACLE_SECRET_KEY',
  },
  23: { name: 'InvalidStatus' },
  25: { name: 'InvalidStateTransition' },
  59: { name: 'DrawingAlreadyInProgress' },
  61: { name: 'DrawingAlreadyComplete' },
  64: { name: 'RandomnessTooEarly' },
};

/** A refusal's message with the name of its code behind it: `… contract error 64 (RandomnessTooEarly)`. */
export function explained(message: string, contractCode: number | undefined): string {
  const refusal = contractCode === undefined ? undefined : refusals[contractCode];
  if (refusal === undefined) return message;
  const { name, hint } = refusal;
  return `${message} (${name})${hint === undefined ? '' : `: ${hint}`}`;
}
