import { supersededSettings, type UnreadSetting } from './superseded';

/** What begins like this is meant for us: whoever sets it believes that it does something. */
const HOUSE_PREFIXES = [
  'CERTIFICATE_MINTED_',
  'COMMIT_REVEAL_',
  'EVENT_',
  'HTTP_',
  'MANIFEST_REHASH_',
  'MINT_',
  'MONGODB_',
  'OPERATIONS_',
  'ORACLE_',
  'PINATA_',
  'QUEUE_',
  'RAFFLE_',
  'RANDOMNESS_',
  'SOROBAN_',
  'SOROLANE_',
  'SPV_',
  'STELLAR_',
  'VERIFICATION_',
  'VRF_',
  'WORKER_',
] as const;

/** These begin like ours, and are read by others: proxies, clients of Oracle's database, the tests of this repository. */
const OF_OTHERS = new Set([
  'HTTP_PROXY',
  'ORACLE_BASE',
  'ORACLE_HOME',
  'ORACLE_SID',
  'SOROLANE_MONGOD',
  'SOROLANE_MONGOD_DOWNLOAD_MS',
]);

/** What Kubernetes and Docker's links set in each container for each service: for one named worker, WORKER_SERVICE_HOST. */
const OF_SERVICES = /_(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
/** …and WORKER_PORT=tcp://10.0.0.7:80 beside them. */
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

const NEAR_EDITS = 2;
/** Two edits make too many words out of a shorter one: HOST out of HOME, and PORT out of anything. */
const LEAST_LETTERS_FOR_NEAR = 7;

/** Variables that are set, look like ours, and are none. Values are never repeated. */
export function unknownIn(
  environment: Record<string, string | undefined>,
  known: readonly string[],
): UnreadSetting[] {
  const named = new Set([...known, ...supersededSettings.map(({ name }) => name)]);
  const isSet = (name: string): boolean => (environment[name] ?? '').trim() !== '';
  // A name that is set itself was not misspelt.
  const missing = known.filter((name) => !isSet(name));
  return Object.entries(environment).flatMap(([variable, value = '']) => {
    if (!isSet(variable) || named.has(variable) || isOfOthers(variable, value)) return [];
    const near = nearest(variable, missing);
    if (near !== null) return [{ variable, problem: `did you mean ${near}?` }];
    return HOUSE_PREFIXES.some((prefix) => variable.startsWith(prefix))
      ? [{ variable, problem: 'there is no variable of that name: see .env.example' }]
      : [];
  });
}

const isOfOthers = (name: string, value: string): boolean =>
  OF_OTHERS.has(name) ||
  OF_SERVICES.test(name) ||
  (name.endsWith('_PORT') && SERVICE_ADDRESS.test(value.trim()));

function nearest(name: string, missing: readonly string[]): string | null {
  const candidates = missing
    .filter(({ length }) => length >= LEAST_LETTERS_FOR_NEAR && Math.abs(length - name.length) <= NEAR_EDITS)
    .map((candidate) => ({ candidate, edits: editsBetween(name, candidate) }))
    .filter(({ edits }) => edits <= NEAR_EDITS)
    .sort((a, b) => a.edits - b.edits);
  return candidates[0]?.candidate ?? null;
}

/** Letters to add, to take away or to change. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let index = 0; index < from.length; index++) {
    const next = [index + 1];
    for (let column = 0; column < to.length; column++) {
      const changed = (row[column] ?? 0) + Number(from[index] !== to[column]);
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
