/** Error codes that both raffle contracts share, by the published enum. */
export const raffleErrors = {
  /** Not in the published enum, where each raffle is a contract of its own. */
  raffleNotFound: 1,
  notAuthorized: 5,
  oracleNotSet: 6,
  randomnessAlreadyRequested: 7,
  noRandomnessRequest: 8,
  fallbackTooEarly: 9,
  invalidParameters: 21,
  invalidStatus: 23,
  invalidStateTransition: 25,
  drawingAlreadyInProgress: 59,
  drawingAlreadyComplete: 61,
  randomnessTooEarly: 64,
} as const;

/** How a seed came about, as events and views tell it. */
export const randomnessTypes = { prng: 0, vrf: 1, fallback: 2 } as const;
