import type { z } from 'zod';
import { settingGroups } from './config';

/** The text of `.env.example`: every variable with what it is and its default, out of the schema itself. */
export function renderEnvExample(): string {
  const groups = settingGroups.map(({ title, settings }) => {
    const variables = Object.entries(settings).map(([name, variable]) => renderVariable(name, variable));
    return [`# --- ${title} ---`, ...variables].join('\n\n');
  });
  return `# Copy to .env and fill in. An empty variable counts as unset; what stands here is the default.\n\n${groups.join('\n\n')}\n`;
}

function renderVariable(name: string, variable: z.ZodType): string {
  const meta = variable.meta() ?? {};
  const fallback = variable.safeParse(undefined);
  const required = fallback.success ? '' : ' Required.';
  const about = wrap(`${String(meta['about'])}${required}`, 110).map((line) => `# ${line}`);
  return [
    ...about,
    `${name}=${fallback.success ? renderValue(fallback.data as Parameters<typeof renderValue>[0]) : ''}`,
  ].join('\n');
}

function renderValue(value: string | number | boolean | string[] | undefined): string {
  if (value === undefined) return '';
  return Array.isArray(value) ? value.join(',') : String(value);
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + word.length + 1 > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
