import type { Simnet } from '../../simnet';
import type { Workload } from './workload';

/**
 * Sets the work going as it comes in the field: content is put into the IPFS gateway, then contracts emit the events that
 * ask for verifications and for randomness. From here on the house works by itself.
 */
export async function askForWork(workload: Workload, simnet: Simnet): Promise<void> {
  const requests = await Promise.all(
    workload.requests.map(async ({ manifest, media, requester }) => ({
      manifestCid: await simnet.gateway.put(manifest),
      mediaCid: await simnet.gateway.put(media),
      requester,
    })),
  );
  await Promise.all([
    simnet.actions.emitVerificationRequests(requests),
    simnet.actions.drawRaffles(workload.raffles),
  ]);
}
