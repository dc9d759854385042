import mongoose from 'mongoose';
import { createLogger } from '../../src/platform/logger';
import { parcelQueue } from './queue-fixture';
import { heartbeatRepository, parcelSource, testPool } from './worker-fixture';

/**
 * A worker process of its own: `worker-child.ts <uri> <model> <leaseMs>`. What a job's label says is what it does to its worker.
 */
async function main([uri, model, leaseMs]: string[]): Promise<void> {
  const connection = await mongoose
    .createConnection(uri!, { autoIndex: false, autoCreate: false })
    .asPromise();
  const queue = await parcelQueue(connection, model, { leaseMs: Number(leaseMs) });
  const pool = testPool({
    heartbeats: await heartbeatRepository(connection),
    logger: createLogger({ level: 'error' }),
    drainTimeoutMs: 300,
    abortGraceMs: 200,
    sources: [
      parcelSource({
        queue,
        lanes: 2,
        handler: async ({ job, lease }, { signal }) => {
          process.send?.({ kind: 'started', key: job.key, attempt: lease.attempt });
          if (job.label === 'kill') process.exit(9);
          if (job.label === 'hang') {
            await new Promise((resolve) => signal.addEventListener('abort', resolve));
            throw new Error('cut off');
          }
          if (job.label === 'block') {
            const until = performance.now() + 3 * Number(leaseMs);
            while (performance.now() < until);
          }
          return { kind: 'completed', patch: { note: `attempt ${lease.attempt}` } };
        },
      }),
    ],
  });
  pool.events.on('completed', ({ jobId, attempt }) => process.send?.({ kind: 'completed', jobId, attempt }));
  pool.events.on('lease_lost', ({ jobId, attempt }) =>
    process.send?.({ kind: 'lease_lost', jobId, attempt }),
  );
  process.once('SIGTERM', () => {
    void pool
      .stop()
      .then(() => connection.close())
      .then(() => process.disconnect());
  });
  await pool.start();
  process.send?.({ kind: 'ready', workerId: pool.workerId });
}

void main(process.argv.slice(2));
