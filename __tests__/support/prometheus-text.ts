export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

export interface Family {
  kind: string;
  help: string;
  samples: Sample[];
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)/y;

/** Reads a scrape as strictly as a Prometheus server does: families whole and once, no series twice, numbers only. */
export function parsePrometheusText(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families = new Map<string, Family>();
  const series = new Set<string>();
  let current: { name: string; family: Family } | undefined;
  let help: [name: string, text: string] | undefined;
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      help = [name, rest];
    } else if (keyword === 'TYPE') {
      if (families.has(name)) throw new Error(`${name} comes twice`);
      if (help?.[0] !== name) throw new Error(`${name} is not explained`);
      current = { name, family: { kind: rest, help: help[1], samples: [] } };
      families.set(name, current.family);
    } else {
      const sample = parseSample(line);
      if (current === undefined || !belongs(sample.name, current))
        throw new Error(`${line} stands outside its family`);
      const identity = JSON.stringify([sample.name, Object.entries(sample.labels).sort()]);
      if (series.has(identity)) throw new Error(`${identity} comes twice`);
      series.add(identity);
      current.family.samples.push(sample);
    }
  }
  return families;
}

function belongs(
  name: string,
  { name: family, family: { kind } }: { name: string; family: Family },
): boolean {
  if (kind === 'counter' || kind === 'gauge') return name === family;
  return [`${family}_bucket`, `${family}_sum`, `${family}_count`].includes(name);
}

function parseSample(line: string): Sample {
  const match = LINE.exec(line);
  if (match === null) throw new Error(`not a sample: ${line}`);
  const [, name = '', labelText = '', number = ''] = match;
  const value = number === '+Inf' ? Infinity : Number(number);
  // Go's ParseFloat, which decides, takes any spelling; the runtime's own figures know no lag before the first sample.
  if (Number.isNaN(value) && !/^nan$/i.test(number)) throw new Error(`not a number: ${line}`);
  const labels: Record<string, string> = {};
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < labelText.length) {
    const label = LABEL.exec(labelText);
    if (label === null) throw new Error(`bad labels: ${line}`);
    labels[label[1]!] = label[2]!;
  }
  return { name, labels, value };
}

/** The value of the one series that has these labels among its own; undefined without any. */
export function valueOf(
  families: Map<string, Family>,
  name: string,
  labels: Record<string, string> = {},
): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ''));
  return family?.samples.find(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )?.value;
}
