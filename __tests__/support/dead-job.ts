import { TransientError } from '../../src/platform/errors';
import type { RandomnessFixture } from './randomness-fixture';

/** A job of a raffle of its own that used up its two attempts (QUEUE_MAX_RETRIES=2), with its dead letter written. */
export async function deadJob(
  world: RandomnessFixture,
  raffle: number,
  more: Parameters<RandomnessFixture['submit']>[2] = {},
): Promise<{ id: string; raffle: number }> {
  const id = `req-${raffle}`;
  world.chain.drawing(raffle);
  await world.submit(id, raffle, more);
  for (let attempt = 1; attempt <= 2; attempt++) {
    world.chain.scripts.prepare.push(new TransientError('INSUFFICIENT_FEE', 'insufficient fee'));
    await world.tryOnce(id);
  }
  await world.pipeline.projector.projectPending();
  return { id, raffle };
}
