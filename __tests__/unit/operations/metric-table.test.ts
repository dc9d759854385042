import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { withMetricList } from '../../../src/operations/metrics-doc';
import { metricTable, type MetricDefinition } from '../../../src/platform/metric-table';

const root = path.join(__dirname, '../../..');
const metrics = Object.entries<MetricDefinition>(metricTable);
const namesOf = (...kinds: string[]): string[] =>
  metrics
    .filter(([, { kind }]) => kinds.includes(kind))
    .map(([name]) => name)
    .sort();

/** The names given to `call` in the program's own text. */
function namesAt(call: RegExp): string[] {
  const files = readdirSync(path.join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(path.join(root, 'src', file), 'utf8'));
  const names = files.flatMap((text) => [...text.matchAll(call)].map((match) => match[1]!));
  return [...new Set(names)].sort();
}

describe('the table of metrics', () => {
  test('holds what call sites record, and nothing that none does', () => {
    expect(namesAt(/\bmetrics\.count\(\s*'(\w+)'/g)).toEqual(namesOf('counter'));
    expect(namesAt(/\bmetrics\.observe\(\s*'(\w+)'/g)).toEqual(namesOf('histogram'));
    expect(namesAt(/\breading\(\s*'(\w+)'/g)).toEqual(namesOf('gauge'));
  });

  test.each(metrics)('%s keeps to the naming scheme', (name, { kind, help, labels, buckets }) => {
    expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
    expect(name.endsWith('_total')).toBe(kind === 'counter');
    expect(help).toMatch(/^[A-Z0-9].*[^.]\.$/);
    for (const label of labels) expect(label).toMatch(/^[a-z][a-z_]*$/);
    expect(labels).not.toContain('le');
    expect(buckets !== undefined).toBe(kind === 'histogram');
    expect(buckets).toEqual(buckets?.toSorted((a, b) => a - b));
  });

  // An exporter of OpenMetrics calls a counter by its name without _total.
  test('no two share a name once endings are taken off', () => {
    const bases = metrics.map(([name]) => name.replace(/_total$/, ''));
    expect(bases).toEqual([...new Set(bases)]);
  });

  test('docs/operations.md lists it, word for word', () => {
    const page = readFileSync(path.join(root, 'docs/operations.md'), 'utf8');
    expect(page).toBe(withMetricList(page));
  });
});
