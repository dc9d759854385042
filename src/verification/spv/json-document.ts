/** What a text says to every reader alike, or why it doesn't. */
export type JsonDocument =
  { kind: 'document'; value: unknown } | { kind: 'not_json' } | { kind: 'ambiguous'; problem: string };

/** Far beyond any honest manifest, and far below what overflows a recursive reader's stack. */
const MAX_DEPTH = 64;

/**
 * Reads JSON that has one meaning (I-JSON, RFC 7493, on which the canonical form of RFC 8785 rests). Two readers of a
 * document with a repeated key may each see another value, so its certificate would vouch for either; half a surrogate pair
 * and a number beyond a double have no canonical form at all.
 */
export function parseJsonDocument(text: string): JsonDocument {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'not_json' };
  }
  const problem = findAmbiguity(text);
  return problem === null ? { kind: 'document', value } : { kind: 'ambiguous', problem };
}

/** The keys of an object that is open at this place; null for an array. */
type Open = Set<string> | null;

/** Of a text that is known to be JSON, so that tokens needn't be checked. Not recursive, for the depth is the sender's to choose. */
function findAmbiguity(text: string): string | null {
  const open: Open[] = [];
  let isKeyNext = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    switch (character) {
      case '{':
      case '[':
        if (open.push(character === '{' ? new Set() : null) > MAX_DEPTH)
          return `is nested deeper than ${MAX_DEPTH} levels`;
        isKeyNext = character === '{';
        break;
      case '}':
      case ']':
        open.pop();
        isKeyNext = false;
        break;
      case ',':
        isKeyNext = (open.at(-1) ?? null) !== null;
        break;
      case '"': {
        const end = endOfString(text, at);
        const raw = text.slice(at, end);
        const string = raw.includes('\\') ? (JSON.parse(raw) as string) : raw.slice(1, -1);
        if (/\p{Surrogate}/u.test(string)) return 'has half a surrogate pair in a string';
        const keys = open.at(-1) ?? null;
        if (isKeyNext && keys !== null) {
          if (keys.has(string))
            return `has the key ${JSON.stringify(string.slice(0, 100))} twice in one object`;
          keys.add(string);
        }
        isKeyNext = false;
        at = end - 1;
        break;
      }
      default:
        if (/[-\d]/.test(character)) {
          const end = endOfNumber(text, at);
          if (!Number.isFinite(Number(text.slice(at, end)))) return 'has a number that is too large';
          at = end - 1;
        }
    }
  }
  return null;
}

/** @returns the place after the closing quotation mark of the string that opens at `start` */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at + 1;
}

function endOfNumber(text: string, start: number): number {
  let at = start + 1;
  while (/[-+.\deE]/.test(text.charAt(at))) at += 1;
  return at;
}
