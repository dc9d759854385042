import { sleep } from '../../platform/clock';
import type { Simnet } from '../../simnet';
import type { DemoRequest } from './workload';

export interface SubmitOptions {
  apiUrl: string;
  apiKey: string;
  simnet: Simnet;
  seed: number;
}

const SUBMITTERS = 8;
const MAX_TRIES = 5;
const RETRY_MS = 500;

/** Puts each request's content into the IPFS gateway and asks the API for its verification, some side by side. */
export async function submitAll(workload: readonly DemoRequest[], options: SubmitOptions): Promise<void> {
  const queue = [...workload];
  const submitter = async (): Promise<void> => {
    for (let request = queue.shift(); request !== undefined; request = queue.shift())
      await submit(request, options);
  };
  await Promise.all(Array.from({ length: SUBMITTERS }, submitter));
}

async function submit(request: DemoRequest, { apiUrl, apiKey, simnet, seed }: SubmitOptions): Promise<void> {
  const manifestCid = await simnet.gateway.put(request.manifest);
  const mediaCid = await simnet.gateway.put(request.media);
  const body = JSON.stringify({ manifestCid, mediaCid, requester: request.requester });
  // The key makes trying again safe: whether or not the first call got through, there is one request.
  const headers = {
    'content-type': 'application/json',
    'x-api-key': apiKey,
    'idempotency-key': `demo-${seed}-${request.index}`,
  };
  for (let tries = 1; ; tries++) {
    const response = await fetch(`${apiUrl}/api/v1/verification/requests`, { method: 'POST', headers, body });
    if (response.status === 202) return;
    if (response.status < 500 || tries === MAX_TRIES)
      throw new Error(
        `the API refused request ${request.index} with ${response.status}: ${await response.text()}`,
      );
    await sleep(RETRY_MS);
  }
}
