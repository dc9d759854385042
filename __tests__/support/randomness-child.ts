import type { TransactionSubmitter } from '../../src/stellar/submission';
import { type DeathPoint, type NetworkWorkerOptions, openNetworkWorker } from './randomness-network';

/**
 * A worker process of its own: `randomness-child.ts <options as JSON>`. With `dieAt` it kills itself there, as kill -9 would.
 * Says when it is ready, and waits for a message to start its lanes.
 */
async function main([argument]: string[]): Promise<void> {
  const { dieAt, ...options } = JSON.parse(argument!) as NetworkWorkerOptions & { dieAt?: DeathPoint };
  const at = (point: DeathPoint): void => {
    if (point === dieAt) process.kill(process.pid, 'SIGKILL');
  };
  const wrap = (submitter: TransactionSubmitter): TransactionSubmitter => ({
    prepare: async (request, signal) => {
      const prepared = await submitter.prepare(request, signal);
      at('prepared');
      return prepared;
    },
    send: async (request, signal) => {
      const sent = await submitter.send(request, signal);
      at('sent');
      return sent;
    },
    confirm: async (request, confirmOptions) => {
      const outcome = await submitter.confirm(request, confirmOptions);
      at('confirmed');
      return outcome;
    },
  });
  const worker = await openNetworkWorker(options, { wrap });
  if (dieAt === 'generating') {
    const read = worker.stellar.reader.read.bind(worker.stellar.reader);
    worker.stellar.reader.read = (call, signal) => {
      at('generating');
      return read(call, signal);
    };
  }
  process.once('SIGTERM', () => void worker.close().then(() => process.disconnect()));
  process.once('message', () => void worker.pool.start());
  process.send?.('ready');
}

void main(process.argv.slice(2));
