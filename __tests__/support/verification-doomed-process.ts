import mongoose from 'mongoose';
import { openWorker } from './verification-worker';

/**
 * A worker process that kills itself, as `kill -9` does, at one call of its first job: CRASH_AT is `<part>.<method>` and
 * `before` or `after`, as in `submitter.send:after`.
 */
async function main(): Promise<void> {
  const [point = '', when] = (process.env['CRASH_AT'] ?? '').split(':');
  const environment = JSON.parse(process.env['WORKER_ENVIRONMENT'] ?? '{}') as Record<string, string>;
  const connection = await mongoose.createConnection(environment['MONGODB_URI'] ?? '').asPromise();

  const die = async (): Promise<never> => {
    process.kill(process.pid, 'SIGKILL');
    return new Promise(() => undefined);
  };
  const deadly = <T extends object>(part: string, target: T): T =>
    new Proxy(target, {
      get: (_target, property) => {
        const member: unknown = Reflect.get(target, property, target);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]): Promise<unknown> => {
          const here = `${part}.${String(property)}` === point;
          if (here && when === 'before') await die();
          const answer: unknown = await Reflect.apply(member, target, args);
          return here ? die() : answer;
        };
      },
    });

  const { pool } = await openWorker({
    connection,
    environment,
    lanes: 1,
    leaseMs: Number(process.env['LEASE_MS']),
    wrap: (deps) => ({
      ...deps,
      signer: deadly('signer', deps.signer),
      reader: deadly('reader', deps.reader),
      submitter: deadly('submitter', deps.submitter),
    }),
  });
  await pool.start();
}

void main();
