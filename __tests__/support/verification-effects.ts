import type { VerificationHandlerDeps } from '../../src/verification/verification.handler';

export interface Effect {
  /** From 1, in the order in which the pipeline calls out. */
  number: number;
  name: string;
}

export interface EffectHooks {
  before?(effect: Effect): Promise<void> | void;
  after?(effect: Effect): Promise<void> | void;
}

/**
 * The pipeline's dependencies with a hook around every call that reaches outside the process: database, gateway, key,
 * chain. A hook that throws keeps the call from happening, or its answer from arriving.
 */
export function withEffects(deps: VerificationHandlerDeps, hooks: EffectHooks): VerificationHandlerDeps {
  let count = 0;
  const watch = <T extends object>(what: string, target: T): T =>
    new Proxy(target, {
      get: (_target, property) => {
        const member: unknown = Reflect.get(target, property, target);
        if (typeof member !== 'function') return member;
        return (...args: unknown[]): unknown => {
          const called = (): unknown => Reflect.apply(member, target, args);
          // Pure helpers are no effects: they can't be cut off.
          if (property === 'mintCall') return called();
          const effect = { number: (count += 1), name: `${what}.${String(property)}` };
          return (async () => {
            await hooks.before?.(effect);
            const answer = await called();
            await hooks.after?.(effect);
            return answer;
          })();
        };
      },
    });
  return {
    queue: watch('queue', deps.queue),
    jobs: watch('jobs', deps.jobs),
    content: { ...deps.content, gateway: watch('gateway', deps.content.gateway) },
    attestation: { ...deps.attestation, signer: watch('signer', deps.attestation.signer) },
    authorization: {
      ...deps.authorization,
      authorization: {
        ...deps.authorization.authorization,
        reader: watch('reader', deps.authorization.authorization.reader),
      },
    },
    mint: {
      ...deps.mint,
      submitter: watch('submitter', deps.mint.submitter),
      provenance: watch('provenance', deps.mint.provenance),
    },
  };
}
