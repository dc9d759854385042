import type { DemoOptions } from './options';
import type { Stage } from './stage';
import { makeWorkload } from './workload';

/** What there is to try by hand while the demo stays up: commands that work as they are. */
export async function tryLines(
  { raffles }: Pick<DemoOptions, 'raffles'>,
  { simnet, apiKey }: Pick<Stage, 'simnet' | 'apiKey'>,
  apiUrl: string,
): Promise<string[]> {
  return [
    `curl ${apiUrl}/api/v1/worker/health`,
    ...(await verificationLines(simnet, apiKey, apiUrl)),
    `curl -d '{"count":3}' ${simnet.controlUrl}/raffles   # draws three more raffles`,
    `curl ${apiUrl}/queue/health`,
    ...(raffles === 0 ? [] : [`curl ${apiUrl}/api/v1/randomness/requests/1`]),
    `curl '${apiUrl}/queue/jobs/confirmed?limit=3'`,
    `curl ${simnet.observerUrl}/raffle-deliveries`,
  ];
}

async function verificationLines(
  { gateway, observerUrl }: Stage['simnet'],
  apiKey: string,
  apiUrl: string,
): Promise<string[]> {
  const [example] = makeWorkload({ requests: 1, reject: 0, raffles: 0, seed: Date.now() }).requests;
  if (example === undefined) return [];
  const body = JSON.stringify({
    manifestCid: await gateway.put(example.manifest),
    mediaCid: await gateway.put(example.media),
    requester: example.requester,
  });
  return [
    `curl ${observerUrl}/certificates`,
    `curl -X POST ${apiUrl}/api/v1/verification/requests -H 'x-api-key: ${apiKey}' \\`,
    `  -H 'content-type: application/json' -d '${body}'`,
    `curl '${apiUrl}/api/v1/verification/jobs?ownerPublicKey=${example.requester}'`,
  ];
}
