/** The scale of the specification: lower is sooner. */
export const priorityLevel = { critical: 0, high: 1, normal: 5, low: 10 } as const;
export type PriorityLevel = (typeof priorityLevel)[keyof typeof priorityLevel];

export interface PriorityThresholds {
  /** XLM from which a raffle is high. */
  highValueXlm: number;
  /** XLM from which it is normal. */
  mediumValueXlm: number;
}

export const defaultPriorityThresholds: PriorityThresholds = { highValueXlm: 10_000, mediumValueXlm: 1_000 };

/** Null when the two are the wrong way round: no prize could be "normal", so the defaults are safer than a guess. */
export const checkedThresholds = (thresholds: PriorityThresholds): PriorityThresholds | null =>
  thresholds.mediumValueXlm < thresholds.highValueXlm ? thresholds : null;

/** What a contract's event or a trusted caller may ask for; anything else counts as no wish. */
export type PriorityFlag = boolean | 'high' | 'critical' | undefined;

export function priorityOf(
  request: { prizeXlm?: number | undefined; flag?: PriorityFlag },
  thresholds: PriorityThresholds,
): PriorityLevel {
  const byPrize = priorityOfPrize(request.prizeXlm, thresholds);
  const lifted = request.flag === true || request.flag === 'high' || request.flag === 'critical';
  return lifted && byPrize > priorityLevel.high ? priorityLevel.high : byPrize;
}

function priorityOfPrize(prizeXlm: number | undefined, thresholds: PriorityThresholds): PriorityLevel {
  // NaN and negative amounts fail both comparisons.
  if (prizeXlm === undefined) return priorityLevel.low;
  if (prizeXlm >= thresholds.highValueXlm) return priorityLevel.high;
  if (prizeXlm >= thresholds.mediumValueXlm) return priorityLevel.normal;
  return priorityLevel.low;
}

/** The queue's scale: higher is sooner, 0 is ordinary. */
export const queuePriorityOf = (level: PriorityLevel): number => priorityLevel.low - level;

export const lowestUrgentLevel = priorityLevel.high;

/** Whether the lanes that are reserved for large raffles take it. */
export const isHighPriority = (level: PriorityLevel): boolean => level <= lowestUrgentLevel;

const STROOPS_PER_XLM = 10_000_000n;

/** For thresholds and display: fractions of an XLM beyond a double's precision don't matter there. */
export const stroopsToXlm = (stroops: bigint): number =>
  Number(stroops / STROOPS_PER_XLM) + Number(stroops % STROOPS_PER_XLM) / Number(STROOPS_PER_XLM);
