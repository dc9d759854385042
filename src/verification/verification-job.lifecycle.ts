import { defineLifecycle } from '../lifecycle/lifecycle';

/** In the order in which a job comes through them. */
export const verificationJobStates = [
  'pending',
  'processing',
  'tee_verifying',
  'minting',
  'completed',
  'failed',
] as const;

export type VerificationJobState = (typeof verificationJobStates)[number];

export const verificationJobLifecycle = defineLifecycle<VerificationJobState>('verification job', {
  pending: { to: ['processing', 'failed'] },
  processing: { to: ['tee_verifying', 'failed'], active: true },
  tee_verifying: {
    to: ['minting', 'failed'],
    active: true,
    requires: {
      fields: ['teeAttestationHash', 'teeSignature', 'codeMeasurementHash'],
      code: 'MISSING_TEE_FIELDS',
    },
  },
  minting: {
    to: ['completed', 'failed'],
    active: true,
    requires: { fields: ['stellarTransactionHash'], code: 'MISSING_TRANSACTION_HASH' },
  },
  completed: { to: [] },
  failed: { to: [], requires: { fields: ['errorMessage'], code: 'MISSING_ERROR_MESSAGE' } },
});

/** How far a job in this state has come; it only grows. */
export const stageOf = (state: VerificationJobState): number => verificationJobStates.indexOf(state);
