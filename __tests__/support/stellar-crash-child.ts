import { createConnection } from 'mongoose';
import { silentLogger } from '../../src/platform/logger';
import { createStellarLayer } from '../../src/stellar/stellar-layer';
import { mintRequest, neverAborted, stellarSettingsFor, type SimnetFacts } from './stellar-fixture';

/** What the parent wants done. Each step is reported when it is over; the parent kills at whichever moment it likes. */
export interface CrashOrder {
  facts: SimnetFacts;
  uri: string;
  overrides: Record<string, string>;
  manifestHash: string;
  /** The last step to take; after it the process idles. */
  lastStep: 'prepare' | 'send' | 'confirm';
}

const steps = ['prepare', 'send', 'confirm'] as const;

process.on('message', (order: CrashOrder) => void obey(order));
process.send?.('ready');

async function obey({ facts, uri, overrides, manifestHash, lastStep }: CrashOrder): Promise<void> {
  const connection = await createConnection(uri, { autoIndex: false, autoCreate: false }).asPromise();
  const layer = createStellarLayer({
    settings: stellarSettingsFor(facts, overrides),
    connection,
    logger: silentLogger(),
  });
  const request = mintRequest(facts, layer, manifestHash);
  const signal = neverAborted();
  for (const step of steps) {
    if (step === 'confirm') await layer.submitter.confirm(request, { timeoutMs: 30_000, signal });
    else await layer.submitter[step](request, signal);
    process.send?.(step);
    if (step === lastStep) return;
  }
}
