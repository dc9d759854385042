import { createHash } from 'node:crypto';
import type { CallFault, Condition, FaultPlan, FaultPlanInput, FaultRule } from './fault-rules';
import { callFaultSchema, faultPlanSchema } from './fault-rules';

export interface FaultCall {
  surface: 'rpc' | 'ipfs';
  endpoint: number;
  /** JSON-RPC method. */
  method?: string;
  cid?: string;
}

type ConditionOf<K extends Condition['kind']> = Extract<Condition, { kind: K }>;

const callFaultKinds = new Set<string>(callFaultSchema.options.map((option) => option.shape.kind.value));
const isCallFault = (fault: FaultRule['fault']): fault is CallFault => callFaultKinds.has(fault.kind);

/** The transport faults that `rate` chooses from; each is one a careful client survives. */
const transportFaults = (holdMs: number): CallFault[] => [
  { kind: 'latency', ms: 250 },
  { kind: 'timeoutBefore', holdMs },
  { kind: 'timeoutAfter', holdMs },
  { kind: 'dropBefore' },
  { kind: 'dropReply' },
  { kind: 'httpStatus', status: 429, retryAfterSeconds: 1 },
  { kind: 'httpStatus', status: 500 },
  { kind: 'httpStatus', status: 502 },
  { kind: 'httpStatus', status: 503 },
];

const gatewayFaults = (holdMs: number): CallFault[] => [
  { kind: 'latency', ms: 250 },
  { kind: 'timeoutBefore', holdMs },
  { kind: 'dropBefore' },
  { kind: 'httpStatus', status: 404 },
  { kind: 'httpStatus', status: 429, retryAfterSeconds: 1 },
  { kind: 'httpStatus', status: 500 },
  { kind: 'truncate', afterBytes: 16 },
];

/** Uniform in [0, 1), from the words alone: no draw depends on what other endpoints were asked in between. */
const draw = (...words: (string | number)[]): number =>
  createHash('sha256').update(words.join(':')).digest().readUInt32BE() / 2 ** 32;

/** Decides, for each call, what goes wrong; and for each endpoint, what is wrong with it. */
export class FaultEngine {
  private plan: FaultPlan = faultPlanSchema.parse({});
  private callCounts = new Map<string, number>();
  private ruleMatches: number[] = [];
  private ruleStrikes: number[] = [];
  private readonly strikes = new Map<string, number>();

  /** Replaces all rules; the counts of calls start again. */
  set(plan: FaultPlanInput): void {
    this.plan = faultPlanSchema.parse(plan);
    this.callCounts = new Map();
    this.ruleMatches = this.plan.rules.map(() => 0);
    this.ruleStrikes = this.plan.rules.map(() => 0);
  }

  /** What befalls this call; the first rule that strikes wins, then the rate. */
  next(call: FaultCall): CallFault | undefined {
    const fault = this.fromRules(call) ?? this.fromRate(call);
    if (fault) this.strikes.set(fault.kind, (this.strikes.get(fault.kind) ?? 0) + 1);
    return fault;
  }

  condition<K extends Condition['kind']>(kind: K, endpoint: number): ConditionOf<K> | undefined {
    const rule = this.plan.rules.find(
      ({ fault, endpoints }) => fault.kind === kind && (endpoints?.includes(endpoint) ?? true),
    );
    return rule?.fault as ConditionOf<K> | undefined;
  }

  /** Stroops per operation. */
  surgeFeeRate(): bigint {
    const surge = this.plan.rules.find(({ fault }) => fault.kind === 'surge')?.fault;
    return surge?.kind === 'surge' ? BigInt(surge.minFeeRate) : 0n;
  }

  /** How often each kind has struck since the start. */
  strikesByKind(): Record<string, number> {
    return Object.fromEntries(this.strikes);
  }

  private fromRules(call: FaultCall): CallFault | undefined {
    for (const [index, rule] of this.plan.rules.entries()) {
      if (!isCallFault(rule.fault) || !matches(rule, call)) continue;
      const match = (this.ruleMatches[index] = (this.ruleMatches[index] ?? 0) + 1);
      const struck = this.ruleStrikes[index] ?? 0;
      if (match <= rule.after || struck >= (rule.times ?? Infinity)) continue;
      if (draw(this.plan.seed, 'rule', index, match) >= rule.probability) continue;
      this.ruleStrikes[index] = struck + 1;
      return rule.fault;
    }
    return undefined;
  }

  private fromRate({ surface, endpoint, method }: FaultCall): CallFault | undefined {
    const { seed, holdMs } = this.plan;
    const rate = surface === 'rpc' ? this.plan.rate : this.plan.ipfsRate;
    const stream = `${surface}:${endpoint}`;
    const count = (this.callCounts.get(stream) ?? 0) + 1;
    this.callCounts.set(stream, count);
    if (draw(seed, stream, count) >= rate) return undefined;
    const choices = surface === 'rpc' ? transportFaults(holdMs) : gatewayFaults(holdMs);
    if (method === 'sendTransaction') choices.push({ kind: 'tryAgainLater' });
    return choices[Math.floor(draw(seed, stream, count, 'which') * choices.length)];
  }
}

const matches = (rule: FaultRule, call: FaultCall): boolean =>
  rule.surface === call.surface &&
  (rule.endpoints?.includes(call.endpoint) ?? true) &&
  (rule.methods?.includes(call.method ?? '') ?? true) &&
  (rule.cids?.includes(call.cid ?? '') ?? true);
