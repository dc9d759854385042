import { jobListItem } from '../../randomness/views';
import type { Operator, RescueResult } from '../../randomness/rescue.service';
import { type Answer, exitCodes, facts, table } from '../answer';
import type { OpenRescue } from './open-rescue';

/** One invocation: who asks, and whether it is meant. */
export interface Intent extends Operator {
  execute: boolean;
}

const JOB_COLUMNS = [
  'requestId',
  'raffleId',
  'currentState',
  'attemptCount',
  'updatedAt',
  'lastError',
] as const;

export async function reEnqueue({ pipeline }: OpenRescue, id: string, intent: Intent): Promise<Answer> {
  const job = await pipeline.rescue.find(id);
  if (job === null) return notFound(id);
  if (!intent.execute) return preview('re-enqueue', { ...jobListItem(job), phase: job.phase });
  return resultOf('re-enqueue', await pipeline.rescue.reEnqueue(id, intent));
}

export async function forceSubmit(
  { pipeline, network }: OpenRescue,
  request: { raffleId: number | null; requestId: string; prizeXlm?: number },
  intent: Intent,
): Promise<Answer> {
  if (intent.execute) return resultOf('force-submit', await pipeline.rescue.forceSubmit(request, intent));
  const plan = await pipeline.rescue.preview(request);
  return preview('force-submit', { ...plan, network: network.passphrase, rpcUrls: network.rpcUrls });
}

export async function forceFail({ pipeline }: OpenRescue, id: string, intent: Intent): Promise<Answer> {
  const job = await pipeline.rescue.find(id);
  if (job === null) return notFound(id);
  if (!intent.execute) return preview('force-fail', { ...jobListItem(job), phase: job.phase });
  return resultOf('force-fail', await pipeline.rescue.forceFail(id, intent));
}

export async function listJobs({ pipeline }: OpenRescue, which: 'failed' | 'all'): Promise<Answer> {
  const jobs = await (which === 'failed' ? pipeline.rescue.listFailed() : pipeline.rescue.listAll());
  const items = jobs.map((job) => ({ jobId: job._id.toHexString(), ...jobListItem(job) }));
  return {
    exitCode: exitCodes.done,
    data: { jobs: items },
    lines: table(items, JOB_COLUMNS),
  };
}

export async function listStuck({ pipeline }: OpenRescue): Promise<Answer> {
  const draws = await pipeline.rescue.reportOpen();
  const stuck = draws.filter(({ status }) => status === 'stuck');
  return {
    exitCode: stuck.length > 0 ? exitCodes.found : exitCodes.done,
    data: { stuck: stuck.length, draws },
    lines: table(draws as unknown as Record<string, unknown>[], [
      'status',
      'requestId',
      'raffleId',
      'contractStatus',
      'queueState',
      'since',
      'nextStep',
    ]),
  };
}

export async function showLogs(
  { pipeline }: OpenRescue,
  query: { raffleId?: number; limit: number },
): Promise<Answer> {
  const { rows } = await pipeline.audit.page({ rescueOnly: true, ...query });
  return {
    exitCode: exitCodes.done,
    data: { logs: rows },
    lines: table(
      rows.map((row) => ({ ...row, ...row.data })),
      ['seq', 'at', 'event', 'requestId', 'operator', 'reason', 'result'],
    ),
  };
}

export async function verifyAudit({ pipeline }: OpenRescue): Promise<Answer> {
  const verdict = await pipeline.audit.verifyChain();
  return verdict.kind === 'intact'
    ? {
        exitCode: exitCodes.done,
        data: { ...verdict },
        lines: [`intact: ${verdict.rows} rows`, ...facts(verdict)],
      }
    : {
        exitCode: exitCodes.found,
        data: { ...verdict },
        lines: [`broken at row ${verdict.fault.seq}: ${verdict.fault.problem}`],
      };
}

function preview(action: string, plan: object): Answer {
  return {
    exitCode: exitCodes.done,
    data: { action, executed: false, plan },
    lines: [
      `dry run: ${action} would act on`,
      ...facts(plan),
      'Nothing was changed. Add --execute to do it.',
    ],
  };
}

function resultOf(action: string, result: RescueResult): Answer {
  const exitCode = { done: exitCodes.done, refused: exitCodes.refused, not_found: exitCodes.notFound }[
    result.kind
  ];
  return {
    exitCode,
    data: { action, executed: result.kind === 'done', result },
    lines: [`${action}: ${result.message}`, ...(result.kind === 'done' ? facts(result.details) : [])],
  };
}

const notFound = (id: string): Answer => ({
  exitCode: exitCodes.notFound,
  data: { error: `there is no job ${id}` },
  lines: [`there is no job ${id}`],
});
