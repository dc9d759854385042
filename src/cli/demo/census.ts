import type { Connection } from 'mongoose';
import { verificationRequestModel } from '../../verification/verification-request.model';
import type { Simnet } from '../../simnet';
import type { DemoRequest } from './workload';

/** What became of the requests so far. Mints are read from the simulated ledger, the rest from the database. */
export interface Census {
  requests: number;
  /** Valid requests whose certificate is on the ledger. */
  minted: number;
  /** Certificates beyond one for a manifest, or for a request that should have been rejected. */
  duplicates: number;
  rejected: number;
  deadLettered: number;
  /** Requests without an end. */
  stuck: number;
}

interface Ends {
  minted: number;
  rejected: number;
  dead: number;
}

export async function takeCensus(
  connection: Connection,
  simnet: Simnet,
  workload: readonly DemoRequest[],
): Promise<Census> {
  const ends = await countEnds(connection);
  const certificates = simnet.observer.certificates();
  const certified = new Set(certificates.map(({ manifestHash }) => manifestHash));
  const minted = workload.filter(({ valid, manifestHash }) => valid && certified.has(manifestHash)).length;
  return {
    requests: workload.length,
    minted,
    duplicates: certificates.length - minted,
    rejected: ends.rejected,
    deadLettered: ends.dead,
    stuck: workload.length - ends.minted - ends.rejected - ends.dead,
  };
}

async function countEnds(connection: Connection): Promise<Ends> {
  const requests = verificationRequestModel(connection);
  const [minted, rejected, dead] = await Promise.all([
    requests.countDocuments({ phase: 'done', outcome: 'minted' }),
    requests.countDocuments({ phase: 'done', outcome: 'rejected' }),
    requests.countDocuments({ phase: 'dead' }),
  ]);
  return { minted, rejected, dead };
}

/** Every valid request minted exactly once, every other one rejected, nothing left over. */
export function isFlawless(census: Census, workload: readonly DemoRequest[]): boolean {
  const valid = workload.filter((request) => request.valid).length;
  return (
    census.minted === valid &&
    census.duplicates === 0 &&
    census.rejected === workload.length - valid &&
    census.deadLettered === 0 &&
    census.stuck === 0
  );
}
