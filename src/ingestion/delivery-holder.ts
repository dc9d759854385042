import { hostname } from 'node:os';
import type { DeliveryToken } from './delivery';

/**
 * True when the token's holder ran on this host and its process is no more. A pid that was given out again only means
 * that the lease has to run out by itself.
 */
export function isHolderGone(token: DeliveryToken): boolean {
  const [host, pid] = (token.split('#', 1)[0] ?? '').split(':');
  if (host !== hostname() || pid === undefined) return false;
  if (Number(pid) === process.pid) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
