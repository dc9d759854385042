import type { Clock } from '../../platform/clock';
import type { DeadLetterRepository } from '../../queue/dead-letters';
import { DeadLetterDiscard } from './dead-letter-discard';
import { ForceSubmitPreview, type ForceSubmitPreviewDeps } from './force-submit-preview';
import { ForceSubmitTargets, type ForceSubmitTargetsDeps } from './force-submit-target';
import { raffleLook } from './raffle-look';
import { RescueLists } from './rescue-lists';
import { RescueLog } from './rescue-log';
import { RescueService, type RescueServiceDeps } from './rescue.service';
import type { AuditTrail } from '../audit/audit-trail';

export type RescueDeps = Pick<
  RescueServiceDeps,
  | 'jobs'
  | 'endings'
  | 'deadLetters'
  | 'runner'
  | 'handler'
  | 'latestLedger'
  | 'requestTimeoutLedgers'
  | 'logger'
> &
  Omit<ForceSubmitTargetsDeps, 'look'> &
  Omit<ForceSubmitPreviewDeps, 'targets'> & {
    pipeline: string;
    records: DeadLetterRepository;
    audit: AuditTrail;
    clock: Clock;
  };

export interface Rescue {
  readonly rescue: RescueService;
  readonly rescueLists: RescueLists;
  readonly rescueLog: RescueLog;
}

export function createRescue(deps: RescueDeps): Rescue {
  const { jobs, audit, logger, contract } = deps;
  const look = raffleLook(contract, logger);
  const rescueLog = new RescueLog({ audit, logger });
  const targets = new ForceSubmitTargets({ ...deps, look });
  return {
    rescue: new RescueService({
      ...deps,
      discards: new DeadLetterDiscard(deps),
      targets,
      previews: new ForceSubmitPreview({ ...deps, targets }),
      look,
      log: rescueLog,
    }),
    rescueLists: new RescueLists({ ...deps, jobs, look }),
    rescueLog,
  };
}
