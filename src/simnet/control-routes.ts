import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { fieldProblems, plainly } from '../platform/input-wording';
import type { ContractIds } from './genesis';
import { readBody, sendJson } from './http-server';
import type { NetworkActions } from './network-actions';

const drawSchema = z.strictObject({
  count: z.int().min(1).max(1000).default(1),
  prizeLumens: z.int().min(1).max(1_000_000_000).default(10),
  /** The request's own flag; the other interface has none. */
  highPriority: z.boolean().default(false),
  interface: z.enum(['receive_randomness', 'provide_randomness']).default('receive_randomness'),
});

export interface Control {
  actions: NetworkActions;
  contracts: ContractIds;
  /** Nobody would close the ledgers that an action waits for. */
  closesByHand: boolean;
}

/** `POST /simnet/raffles`, for people: creates raffles and asks for their randomness. Answers once that is on the ledger. */
export const serveControl = async (
  control: Control,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  if (path !== '/simnet/raffles') {
    sendJson(response, 404, { error: 'not found', paths: ['/simnet/raffles'] });
    return;
  }
  if (request.method !== 'POST') {
    sendJson(response, 405, { error: 'expected POST' }, { allow: 'POST' });
    return;
  }
  const sent = parseJson((await readBody(request)).toString('utf8'));
  const order = drawSchema.safeParse(sent, { error: plainly, reportInput: true });
  if (!order.success) {
    sendJson(response, 400, { error: 'this is no order', problems: fieldProblems(order.error) });
    return;
  }
  if (control.closesByHand) {
    sendJson(response, 409, { error: 'ledgers close by hand here (--ledger-ms 0)' });
    return;
  }
  sendJson(response, 200, { raffles: await draw(control, order.data) });
};

const draw = async (
  { actions, contracts }: Control,
  { count, prizeLumens, highPriority, interface: interfaceName }: z.infer<typeof drawSchema>,
): Promise<object[]> => {
  const orders = Array.from({ length: count }, () => ({ prizeLumens, highPriority }));
  if (interfaceName === 'receive_randomness') {
    const drawn = await actions.drawRaffles(orders);
    return drawn.map((one) => ({ contractId: contracts.raffle, ...one, requestId: String(one.requestId) }));
  }
  const drawn = await actions.drawInstances(orders);
  return drawn.map((one) => ({ ...one, requestId: one.requestId.toString() }));
};

/** No body asks for the defaults; what is no JSON is told by the schema. */
const parseJson = (text: string): unknown => {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
