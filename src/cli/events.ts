import { Command, InvalidArgumentError } from 'commander';
import { config as loadDotenv } from 'dotenv';
import type { DeadLetterFilter } from '../ingestion/dead-letters';
import type { DiscardFilter } from '../ingestion/delivery-discard';
import { EventQueue } from '../ingestion/event-queue';
import { ingestionSettings } from '../platform/settings/ingestion.settings';
import * as commands from './events/commands';
import type { Intent } from './events/commands';
import { type Answer, printAnswer } from './answer';

interface GlobalOptions {
  json?: boolean;
  file?: string;
}

interface FilterOptions {
  handler?: string;
  id?: string[];
  all?: boolean;
}

interface DiscardOptions {
  handler?: string;
  unreadable?: boolean;
  id?: string[];
}

/** A service's transactions are over in far less; what holds the file for longer will not let go soon. */
const BUSY_TIMEOUT_MS = 1_000;
const DAY_MS = 24 * 60 * 60 * 1000;

const exitCodeHelp = `
Exit codes:
  0  done, or previewed
  1  usage, or a failure of the command itself (no such file, unreadable)
  2  gaps: there are some
  3  discard: a service has that handler, and is at it right now
  4  replay, discard: nothing matches

Nothing is changed without --execute. A service may run on the same file meanwhile.`;

/** `events …`: looks into, and after, the file that contract events wait in. */
export function eventsCommand(): Command {
  const program = new Command('events')
    .description('Looks after the event queue. Previews unless --execute is given.')
    .addHelpText('after', exitCodeHelp)
    .showHelpAfterError('(--help tells what there is)');

  program
    .command('stats')
    .description('how many events wait, and for whom; where each contract stands')
    .action((_options: object, command: Command) => answer(command, commands.stats));
  program
    .command('failed')
    .description('what handlers gave up, and what could not be read')
    .option('--handler <name>', 'of one handler')
    .option('--limit <count>', 'at most so many', wholeNumber, 50)
    .option('--after <seq>', 'behind this row', wholeNumber, 0)
    .action(
      ({ handler, limit, after }: { handler?: string; limit: number; after: number }, command: Command) =>
        answer(command, (queue) =>
          commands.failed(queue, handler === undefined ? {} : { handler }, { limit, afterSeq: after }),
        ),
    );
  mutation(program, 'replay', 'gives failed events back to the handlers that gave them up')
    .option('--handler <name>', 'those of one handler')
    .option('--id <eventId...>', 'those of these events')
    .option('--all', 'every one')
    .action((options: FilterOptions, command: Command) => {
      const filter = filterOf(options, command);
      const intent = intentOf(command);
      return answer(command, (queue) => commands.replay(queue, filter, intent));
    });
  mutation(program, 'discard', 'gives up for good what a handler is owed, or what could not be read')
    .option('--handler <name>', 'of this handler, waiting or failed: one that no longer exists, say')
    .option('--unreadable', 'events that could not be read')
    .option('--id <eventId...>', 'of these only the ones of these events')
    .action((options: DiscardOptions, command: Command) => {
      const filter = discardFilterOf(options, command);
      const intent = intentOf(command);
      return answer(command, (queue) => commands.discard(queue, filter, intent));
    });
  program
    .command('gaps')
    .description('ledgers whose events no server had any more; exit code 2 when there are any')
    .action((_options: object, command: Command) => answer(command, commands.gaps));
  mutation(program, 'cleanup', 'removes processed events; failed ones stay')
    .option('--older-than-ms <ms>', 'processed so long ago', wholeNumber, DAY_MS)
    .action(({ olderThanMs }: { olderThanMs: number }, command: Command) => {
      const intent = intentOf(command);
      return answer(command, (queue) => commands.cleanup(queue, olderThanMs, intent));
    });
  for (const command of program.commands) {
    command
      .option('--json', 'answer with one JSON object')
      .option('--file <path>', 'the queue file (default: EVENT_QUEUE_PATH)');
  }
  return program;
}

function mutation(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .requiredOption('--operator <name>', 'who does it')
    .requiredOption('--reason <text>', 'why')
    .option('--execute', 'do it, rather than say what would be done');
}

function intentOf(command: Command): Intent {
  const {
    operator,
    reason,
    execute = false,
  } = command.opts<Omit<Intent, 'execute'> & { execute?: boolean }>();
  if (operator.trim() === '' || reason.trim() === '')
    command.error('error: --operator and --reason must say something');
  return { operator, reason, execute };
}

/** Replaying everything has to be asked for: a forgotten filter must not do it. */
function filterOf({ handler, id, all = false }: FilterOptions, command: Command): DeadLetterFilter {
  if (all === (handler !== undefined || id !== undefined)) {
    command.error('error: name a --handler, some --id, or --all');
  }
  return {
    ...(handler === undefined ? {} : { handler }),
    ...(id === undefined ? {} : { eventIds: id }),
  };
}

function discardFilterOf(
  { handler, unreadable = false, id }: DiscardOptions,
  command: Command,
): DiscardFilter {
  if (unreadable === (handler !== undefined)) command.error('error: name a --handler, or --unreadable');
  return { handler: handler ?? null, ...(id === undefined ? {} : { eventIds: id }) };
}

function answer(command: Command, act: (queue: EventQueue) => Answer): Promise<void> {
  loadDotenv({ quiet: true });
  const { json = false, file } = command.optsWithGlobals<GlobalOptions>();
  const path = file ?? ingestionSettings.EVENT_QUEUE_PATH.parse(process.env['EVENT_QUEUE_PATH'] || undefined);
  return printAnswer(json, () => {
    const queue = new EventQueue(path, 3, { mustExist: true, busyTimeoutMs: BUSY_TIMEOUT_MS });
    try {
      return act(queue);
    } finally {
      queue.close();
    }
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('expected a whole number');
  return Number(text);
}

if (require.main === module) void eventsCommand().parseAsync();
