import { Command, InvalidArgumentError } from 'commander';
import { config as loadDotenv } from 'dotenv';
import { type Answer, printAnswer } from './answer';
import { changeJob, forceSubmit, type Intent } from './rescue/mutations';
import { openRescue, type OpenRescue } from './rescue/open-rescue';
import { listJobs, listStuck, showLogs, verifyAudit } from './rescue/reports';

interface GlobalOptions {
  json?: boolean;
}

interface MutationOptions {
  operator: string;
  reason: string;
  execute?: boolean;
}

const DEFAULT_LIST_LIMIT = 100;
const DEFAULT_LOG_LIMIT = 50;

const help = `
Exit codes:
  0  done, or previewed
  1  usage, configuration, or a failure of the command itself
  2  list-stuck found stuck draws; verify-audit found the chain broken
  3  refused, or a preview of what would be: the raffle is over, or still waits; a worker holds the job
  4  there is no such job

Nothing is changed without --execute, and nothing is done that "logs" doesn't tell of. Answers go to stdout, logs to stderr.`;

/** `rescue …` of the house, and `npm run oracle:rescue -- …` by itself. */
export function rescueCommand(): Command {
  const program = new Command('rescue')
    .description('Looks after raffle randomness that got stuck. Previews unless --execute is given.')
    .option('--json', 'answer with one JSON object')
    .option('--request-id <id>', 're-enqueue that request; the same as: re-enqueue <id>')
    .option('--operator <name>', 'who does it')
    .option('--reason <text>', 'why')
    .option('--execute', 'do it, rather than say what would be done')
    .addHelpText('afterAll', help)
    // A mistyped command would otherwise be reported as one argument too many.
    .allowExcessArguments()
    .action(async (options: GlobalOptions & Partial<MutationOptions> & { requestId?: string }) => {
      const [unknown] = program.args;
      if (unknown !== undefined)
        return program.error(`error: unknown command '${unknown}' (--help lists them)`);
      const { requestId, operator, reason, execute = false } = options;
      if (requestId === undefined) return program.help({ error: true });
      // A preview changes nothing, so it needs nobody to answer for it.
      if (execute && (operator === undefined || reason === undefined)) {
        return program.error("error: --execute needs '--operator <name>' and '--reason <text>'");
      }
      const intent: Intent = { operator: operator ?? '', reason: reason ?? '', execute };
      await answer(program, (rescue) => changeJob(rescue, 're-enqueue', requestId, intent));
    });

  jobMutation(program, 're-enqueue', 'sends a failed or dead-lettered job back to work');
  mutation(program, 'force-submit', 'delivers now, from this process')
    .argument('<raffleId>', 'number of the raffle; "-" where each raffle is a contract', raffleNumber)
    .argument('<requestId>', 'as the contract counts it; C…:id for another contract than the configured one')
    .option('--prize <xlm>', 'prize, where the raffle can’t be asked', prize)
    .action((raffleId: number | null, requestId: string, options: { prize?: number }, command: Command) => {
      const intent = intentOf(command);
      const request = {
        raffleId,
        requestId,
        ...(options.prize === undefined ? {} : { prizeXlm: options.prize }),
      };
      return answer(command, (rescue) => forceSubmit(rescue, request, intent));
    });
  jobMutation(program, 'force-fail', 'gives up a job that waits');
  jobMutation(program, 'discard', 'clears a dead letter whose raffle needs nothing any more');

  list(program, 'list-failed', 'failed and dead-lettered jobs', 'failed');
  list(program, 'list-all', 'jobs of every state', 'all');
  program
    .command('list-stuck')
    .description('open and dead draws: how late they are, what to do; exit code 2 when any is stuck')
    .action((_options: object, command: Command) => answer(command, listStuck));
  program
    .command('logs')
    .description('what operators did')
    .option('--raffle <raffleId>', 'of one raffle', wholeNumber)
    .option('--limit <count>', 'newest so many', positiveNumber, DEFAULT_LOG_LIMIT)
    .action(({ raffle, limit }: { raffle?: number; limit: number }, command: Command) =>
      answer(command, (rescue) =>
        showLogs(rescue, { limit, ...(raffle === undefined ? {} : { raffleId: raffle }) }),
      ),
    );
  program
    .command('verify-audit')
    .description('walks the hash chain of the audit trail; exit code 2 when it is broken')
    .action((_options: object, command: Command) => answer(command, verifyAudit));
  for (const command of program.commands) command.option('--json', 'answer with one JSON object');
  return program;
}

/** What changes one job that is there. */
function jobMutation(program: Command, name: Parameters<typeof changeJob>[1], description: string): void {
  mutation(program, name, description)
    .argument('<job>', 'request id as the lists show it, or id of the job')
    .action((id: string, _options: object, command: Command) => {
      const intent = intentOf(command);
      return answer(command, (rescue) => changeJob(rescue, name, id, intent));
    });
}

function list(program: Command, name: string, description: string, which: 'failed' | 'all'): void {
  program
    .command(name)
    .description(description)
    .option('--limit <count>', 'at most so many; 0 for all', wholeNumber, DEFAULT_LIST_LIMIT)
    .action(({ limit }: { limit: number }, command: Command) =>
      answer(command, (rescue) => listJobs(rescue, which, limit)),
    );
}

function mutation(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option('--operator <name>', 'who does it (required)')
    .option('--reason <text>', 'why (required)')
    .option('--execute', 'do it, rather than say what would be done');
}

/** The options may stand before or after the sub-command's name. */
function intentOf(command: Command): Intent {
  const { operator, reason, execute = false } = command.optsWithGlobals<Partial<MutationOptions>>();
  if (operator === undefined || operator.trim() === '')
    command.error("error: required option '--operator <name>' not specified");
  if (reason === undefined || reason.trim() === '')
    command.error("error: required option '--reason <text>' not specified");
  return { operator, reason, execute };
}

/** Opens what the command needs, and closes it whatever comes. */
function answer(command: Command, act: (rescue: OpenRescue) => Promise<Answer>): Promise<void> {
  loadDotenv({ quiet: true });
  return printAnswer(command.optsWithGlobals<GlobalOptions>().json === true, async () => {
    const rescue = await openRescue(process.env);
    try {
      return await act(rescue);
    } finally {
      await rescue.close();
    }
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('expected a whole number');
  return Number(text);
}

function positiveNumber(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError('expected 1 or more');
  return number;
}

const raffleNumber = (text: string): number | null => (text === '-' ? null : wholeNumber(text));

function prize(text: string): number {
  const xlm = Number(text);
  if (!Number.isFinite(xlm) || xlm < 0) throw new InvalidArgumentError('expected an amount in XLM');
  return xlm;
}

if (require.main === module) void rescueCommand().parseAsync();
