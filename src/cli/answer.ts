import { describeFailure } from '../platform/errors';
import { makeCensor } from '../platform/logger';

/** What a command says and how it ends. */
export interface Answer {
  exitCode: number;
  /** Printed as it is with --json. */
  data: Record<string, unknown>;
  /** For a person. */
  lines: string[];
}

export const exitCodes = {
  done: 0,
  /** Usage, configuration, or a failure of the command itself. */
  error: 1,
  /** list-stuck found some; verify-audit found the chain broken. */
  found: 2,
  /** It would be wrong to do it: the raffle is over, a worker holds the job. */
  refused: 3,
  notFound: 4,
} as const;

/** Columns of a list, for a person. */
export function table(rows: readonly Record<string, unknown>[], columns: readonly string[]): string[] {
  if (rows.length === 0) return ['none'];
  const cells = [columns, ...rows.map((row) => columns.map((column) => cell(row[column])))];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)));
  return cells.map((line) =>
    line
      .map((text, index) => text.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

export const facts = (record: object): string[] =>
  Object.entries(record).map(([name, value]) => `  ${name}: ${cell(value)}`);

function cell(value: unknown): string {
  if (value === null || value === undefined) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Prints what `act` answers, or why it failed, and sets the exit code. Never rejects. */
export async function printAnswer(json: boolean, act: () => Answer | Promise<Answer>): Promise<void> {
  try {
    const { exitCode, data, lines } = await act();
    process.stdout.write(json ? `${JSON.stringify(data)}\n` : `${lines.join('\n')}\n`);
    process.exitCode = exitCode;
  } catch (error) {
    const { code, message } = describeFailure(error);
    const report = makeCensor([])(message);
    process.stderr.write(`${report}\n`);
    if (json) process.stdout.write(`${JSON.stringify({ error: report, code })}\n`);
    process.exitCode = exitCodes.error;
  }
}
