import { metricTable, type MetricDefinition, type MetricName } from '../platform/metric-table';
import { exposedName } from './prometheus-metrics';

const BEGIN = '<!-- metrics: made by npm run -s docs:metrics -->';
const END = '<!-- end of metrics -->';

/** The text with the list of metrics in it brought up to date. It stands between two marks, which have to be there. */
export function withMetricList(text: string): string {
  const [before, rest] = split(text, BEGIN);
  const [, after] = split(rest, END);
  return `${before}${BEGIN}\n\n${metricList()}\n\n${END}${after}`;
}

function metricList(): string {
  const rows = (Object.entries(metricTable) as [MetricName, MetricDefinition][])
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { kind, labels, help }]) => [
      `\`${exposedName(name)}\``,
      kind,
      labels.map((label) => `\`${label}\``).join(', '),
      help,
    ]);
  return asTable([['metric', 'kind', 'labels', 'what'], ...rows]);
}

/** As the formatter would write it. */
function asTable(rows: readonly string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const padded = rows.map((row) => line(row.map((cell, column) => cell.padEnd(widths[column] ?? 0))));
  return padded.toSpliced(1, 0, line(widths.map((width) => '-'.repeat(width)))).join('\n');
}

function split(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`the text lacks the mark ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
