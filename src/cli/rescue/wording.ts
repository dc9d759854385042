const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const STROOPS_PER_XLM = 10_000_000;

/** The two largest units that say something. */
export function duration(ms: number): string {
  if (ms < SECOND_MS) return '0 s';
  const units: [number, string][] = [
    [DAY_MS, 'd'],
    [HOUR_MS, 'h'],
    [MINUTE_MS, 'min'],
    [SECOND_MS, 's'],
  ];
  const parts = units.map(([unitMs, name], index) => {
    const above = units[index - 1]?.[0] ?? Number.POSITIVE_INFINITY;
    return { count: Math.floor((ms % above) / unitMs), name };
  });
  const first = parts.findIndex(({ count }) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(({ count }) => count > 0)
    .map(({ count, name }) => `${count} ${name}`)
    .join(' ');
}

export const ago = (isoTime: string, nowMs = Date.now()): string =>
  `${duration(Math.max(0, nowMs - Date.parse(isoTime)))} ago`;

export const moment = (isoTime: string): string => `${isoTime.slice(0, 19).replace('T', ' ')} UTC`;

export function count(number: number, one: string, many = `${one}s`): string {
  if (number === 0) return `no ${many}`;
  return `${number.toLocaleString('en-US')} ${number === 1 ? one : many}`;
}

export const stroops = (text: string): string =>
  `${Number(text).toLocaleString('en-US')} stroops (${Number(text) / STROOPS_PER_XLM} XLM)`;

/** On one line, for a column of a table. */
export function brief(text: string, length: number): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** One a line, values under one another. What isn't there is left out. */
export function aligned(
  facts: readonly (readonly [name: string, value: string | number | null])[],
): string[] {
  const present = facts.filter(([, value]) => value !== null);
  const width = Math.max(...present.map(([name]) => name.length));
  return present.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`);
}
