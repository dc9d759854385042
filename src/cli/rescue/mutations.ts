import type { ForceSubmitPlan } from '../../randomness/rescue/force-submit-preview';
import type { ForceSubmitRequest } from '../../randomness/rescue/force-submit-target';
import type { JobPlan } from '../../randomness/rescue/job-plan';
import type { Operator, RescueResult } from '../../randomness/rescue/rescue-log';
import type { JobAction } from '../../randomness/rescue/rescue-rules';
import { type Answer, exitCodes } from '../answer';
import type { NetworkFacts, OpenRescue } from './open-rescue';
import { ago, aligned, stroops } from './wording';

/** One invocation: who asks, and whether it is meant. */
export interface Intent extends Operator {
  execute: boolean;
}

/** What changes one job that is there. */
const jobActions = {
  're-enqueue': { action: 're_enqueue', act: ({ pipeline }, id, by) => pipeline.rescue.reEnqueue(id, by) },
  'force-fail': { action: 'force_fail', act: ({ pipeline }, id, by) => pipeline.rescue.forceFail(id, by) },
  discard: { action: 'discard', act: ({ pipeline }, id, by) => pipeline.rescue.discard(id, by) },
} satisfies Record<
  string,
  { action: JobAction; act: (rescue: OpenRescue, id: string, by: Operator) => Promise<RescueResult> }
>;

export async function changeJob(
  rescue: OpenRescue,
  name: keyof typeof jobActions,
  id: string,
  intent: Intent,
): Promise<Answer> {
  const { action, act } = jobActions[name];
  if (intent.execute) return resultOf(name, await act(rescue, id, intent));
  const plan = await rescue.pipeline.rescue.plan(action, id);
  return plan === null ? notFound(id) : preview(name, plan, jobFacts(plan));
}

export async function forceSubmit(
  { pipeline, network }: OpenRescue,
  request: ForceSubmitRequest,
  intent: Intent,
): Promise<Answer> {
  if (intent.execute) return resultOf('force-submit', await pipeline.rescue.forceSubmit(request, intent));
  const plan = await pipeline.rescue.planForceSubmit(request);
  return preview('force-submit', { ...plan, ...network }, submissionFacts(plan, network));
}

function jobFacts(plan: JobPlan): string[] {
  return aligned([
    ['request', plan.requestId],
    ['raffle', plan.raffleId],
    ['job', plan.jobId],
    ['state', `${plan.state} (${plan.phase}), ${ago(plan.updatedAt)}`],
    ['tries', plan.attemptCount],
    ['contract', plan.contractId],
    ['on chain', plan.contractStatus],
    ['transaction', plan.txHash],
    ['last error', plan.lastError],
  ]);
}

function submissionFacts(
  plan: ForceSubmitPlan,
  { network, rpcUrls, channelAccounts }: NetworkFacts,
): string[] {
  const { feeEstimateStroops, feeProblem, prizeXlm } = plan;
  return aligned([
    ['request', plan.requestId],
    ['raffle', plan.raffleId],
    ['job', plan.jobId ?? 'none yet: it would be made'],
    ['state', plan.state === null ? null : `${plan.state} (${plan.phase ?? '-'})`],
    ['contract', plan.contractId],
    ['on chain', plan.contractStatus],
    ['prize', prizeXlm === null ? 'unknown' : `${prizeXlm} XLM`],
    ['method', plan.method],
    ['proof key', plan.proofKey],
    ['source account', plan.sourceAccount],
    ['carried by', channelAccounts.length === 0 ? null : `one of ${channelAccounts.length} channel accounts`],
    [
      'fee',
      feeEstimateStroops === null ? `unknown: ${feeProblem ?? '-'}` : `about ${stroops(feeEstimateStroops)}`,
    ],
    ['fee class', plan.feeClass],
    ['network', network],
    ['RPC', rpcUrls.join(', ')],
  ]);
}

function preview(name: string, plan: { refusal: string | null }, facts: string[]): Answer {
  const { refusal } = plan;
  return {
    exitCode: refusal === null ? exitCodes.done : exitCodes.refused,
    data: { action: name, executed: false, plan },
    lines: [
      `Dry run of ${name}:`,
      ...facts,
      '',
      refusal === null
        ? 'Nothing was changed. Add --execute to do it.'
        : `Nothing was changed. With --execute it would be refused: ${refusal}.`,
    ],
  };
}

const exitCodeOf = {
  done: exitCodes.done,
  refused: exitCodes.refused,
  not_found: exitCodes.notFound,
} as const;

/** Where the name of a detail isn't a word. */
const labels: Partial<Record<string, string>> = { txHash: 'transaction', lastError: 'last error' };

function resultOf(name: string, result: RescueResult): Answer {
  const { kind, message } = result;
  const facts =
    kind === 'done'
      ? Object.entries(result.details).map(([key, value]) => [labels[key] ?? key, cell(value)] as const)
      : [];
  return {
    exitCode: exitCodeOf[kind],
    data: { action: name, executed: kind === 'done', result },
    lines: [
      kind === 'refused' ? `${name} refused: ${message}.` : `${name}: ${message}.`,
      ...(facts.length === 0 ? [] : aligned(facts)),
    ],
  };
}

const cell = (value: string | number | boolean | null): string | null =>
  value === null ? null : String(value);

const notFound = (id: string): Answer => ({
  exitCode: exitCodes.notFound,
  data: { error: `there is no job ${id}` },
  lines: [`There is no job ${id}.`],
});
