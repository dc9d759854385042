import type { FaultEngine } from './faults';
import { serveControl } from './control-routes';
import { serveFriendbot } from './friendbot';
import type { Genesis } from './genesis';
import type { Listener } from './http-server';
import { listen, sendJson } from './http-server';
import type { IpfsGateway } from './ipfs-gateway';
import type { Ledger } from './ledger';
import type { NetworkActions } from './network-actions';
import { serveObserver } from './observer-routes';
import type { Observer } from './observer';
import type { SimnetSettings } from './options';
import { EndpointView } from './rpc/endpoint-view';
import { serveRpc } from './rpc/rpc-server';
import type { SimnetStats } from './stats';

export interface Parts {
  ledger: Ledger;
  genesis: Genesis;
  faults: FaultEngine;
  gateway: IpfsGateway;
  observer: Observer;
  actions: NetworkActions;
  stats: SimnetStats;
  settings: SimnetSettings;
  facts: () => unknown;
}

export interface Listeners {
  rpc: Listener[];
  gateway: Listener;
  close(): Promise<void>;
}

const portOf = (settings: SimnetSettings, index: number): number =>
  settings.port === 0 ? 0 : settings.port + index;

/** Opens the JSON-RPC endpoints and the gateway; the gateway's listener also answers friendbot, the observer and `/simnet`. */
export const openListeners = async (parts: Parts): Promise<Listeners> => {
  const { settings, ledger, genesis } = parts;
  const gateway = await listen(
    async (request, response) => {
      const url = new URL(request.url ?? '/', 'http://127.0.0.1');
      if (url.pathname === '/friendbot') {
        await serveFriendbot(ledger, genesis, settings.ledgerMs === 0, url, response);
      } else if (url.pathname.startsWith('/observer')) {
        serveObserver(parts.observer, parts.facts, url.pathname, response);
      } else if (url.pathname.startsWith('/simnet')) {
        const { actions } = parts;
        const closesByHand = settings.ledgerMs === 0;
        await serveControl(
          { actions, contracts: genesis.contracts, closesByHand },
          url.pathname,
          request,
          response,
        );
      } else if (url.pathname === '/ipfs' || url.pathname.startsWith('/ipfs/')) {
        await parts.gateway.serve(url, request, response);
      } else {
        sendJson(response, 404, { error: 'not found' });
      }
    },
    portOf(settings, settings.endpoints),
  );

  const open: Listener[] = [gateway];
  const close = async (): Promise<void> => {
    await Promise.all(open.map((listener) => listener.close()));
  };
  try {
    for (let endpoint = 0; endpoint < settings.endpoints; endpoint += 1) {
      open.push(await openRpcEndpoint(parts, endpoint, `${gateway.origin}/friendbot`));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { rpc: open.slice(1), gateway, close };
};

const openRpcEndpoint = (parts: Parts, endpoint: number, friendbotUrl: string): Promise<Listener> => {
  const { settings, ledger, faults, stats } = parts;
  const rpc = {
    context: () => ({
      ledger,
      stats,
      friendbotUrl,
      networkPassphrase: settings.networkPassphrase,
      view: new EndpointView(ledger.history, faults, endpoint, settings.retentionLedgers),
      metaVersion: faults.condition('meta', endpoint)?.version ?? settings.metaVersion,
    }),
    fault: (method: string) => faults.next({ surface: 'rpc', endpoint, method }),
  };
  return listen((request, response) => serveRpc(rpc, request, response), portOf(settings, endpoint));
};
