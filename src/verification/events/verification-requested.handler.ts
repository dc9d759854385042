import { defineEventHandler, type EventHandler } from '../../ingestion/event-handler';
import { parseContentId } from '../spv/content-id';
import { PermanentError } from '../../platform/errors';
import type { VerificationService } from '../verification.service';
import { textField } from './event-fields';

export interface VerificationRequestedOptions {
  service: VerificationService;
  topic: string;
  /** C… strkey of the only contract that is listened to. */
  contractId: string;
  /** Called after a request was taken in: a hint that there is work. */
  onRequest?: () => void;
}

/** Chain → queue. The event's identity is the request's key, so however often it is delivered there is one request. */
export function verificationRequestedHandler(options: VerificationRequestedOptions): EventHandler {
  const { service, topic, contractId, onRequest } = options;
  return defineEventHandler({
    name: 'verification-intake',
    topics: [topic],
    contracts: [contractId],
    concurrency: 8,
    priority: 'high',
    handle: async (events) => {
      for (const { identity, value } of events) {
        const submission = {
          manifestCid: await contentIdField(value, 'manifest_cid'),
          mediaCid: await contentIdField(value, 'media_cid'),
          requester: textField(value, 'requester'),
        };
        await service.submit(submission, `event:${identity}`);
      }
      onRequest?.();
      return undefined;
    },
  });
}

async function contentIdField(value: Parameters<typeof textField>[0], name: string): Promise<string> {
  const text = textField(value, name);
  if ((await parseContentId(text)) !== null) return text;
  throw new PermanentError('MALFORMED_CONTRACT_EVENT', `${name} is no CID`);
}
