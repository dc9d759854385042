import { Command, InvalidArgumentError } from 'commander';
import { config as loadDotenv } from 'dotenv';
import { type Answer, exitCodeHelp, printAnswer } from './answer';
import * as commands from './rescue/commands';
import type { Intent } from './rescue/commands';
import { openRescue, type OpenRescue } from './rescue/open-rescue';

interface GlobalOptions {
  json?: boolean;
}

interface MutationOptions {
  operator: string;
  reason: string;
  execute?: boolean;
}

/** `rescue …` of the house, and `npm run oracle:rescue -- …` by itself. */
export function rescueCommand(): Command {
  const program = new Command('rescue')
    .description('Looks after raffle randomness that got stuck. Previews unless --execute is given.')
    .option('--json', 'answer with one JSON object')
    .option('--request-id <id>', 're-enqueue that request; the same as: re-enqueue <id>')
    .option('--operator <name>', 'who does it')
    .option('--reason <text>', 'why')
    .option('--execute', 'do it, rather than say what would be done')
    .addHelpText('after', exitCodeHelp)
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
      await answer(program, (rescue) => commands.reEnqueue(rescue, requestId, intent));
    });

  mutation(program, 're-enqueue', 'sends a failed or dead-lettered job back to work')
    .argument('<jobId>', 'request id, or id of the job')
    .action((id: string, _options: object, command: Command) => {
      const intent = intentOf(command);
      return answer(command, (rescue) => commands.reEnqueue(rescue, id, intent));
    });
  mutation(program, 'force-submit', 'delivers now, from this process')
    .argument('<raffleId>', 'number of the raffle; "-" where each raffle is a contract', raffleNumber)
    .argument('<requestId>', 'as the contract counts it')
    .option('--prize <xlm>', 'prize, where the raffle can’t be asked', prize)
    .action((raffleId: number | null, requestId: string, options: { prize?: number }, command: Command) => {
      const intent = intentOf(command);
      const request = {
        raffleId,
        requestId,
        ...(options.prize === undefined ? {} : { prizeXlm: options.prize }),
      };
      return answer(command, (rescue) => commands.forceSubmit(rescue, request, intent));
    });
  mutation(program, 'force-fail', 'gives up a job that waits')
    .argument('<jobId>', 'request id, or id of the job')
    .action((id: string, _options: object, command: Command) => {
      const intent = intentOf(command);
      return answer(command, (rescue) => commands.forceFail(rescue, id, intent));
    });

  program
    .command('list-failed')
    .description('failed and dead-lettered jobs')
    .action((_options: object, command: Command) =>
      answer(command, (rescue) => commands.listJobs(rescue, 'failed')),
    );
  program
    .command('list-all')
    .description('jobs of every state')
    .action((_options: object, command: Command) =>
      answer(command, (rescue) => commands.listJobs(rescue, 'all')),
    );
  program
    .command('list-stuck')
    .description('open draws and how late they are; exit code 2 when any is stuck')
    .action((_options: object, command: Command) => answer(command, commands.listStuck));
  program
    .command('logs')
    .description('what operators did')
    .option('--raffle <raffleId>', 'of one raffle', wholeNumber)
    .option('--limit <count>', 'newest so many', wholeNumber, 50)
    .action(({ raffle, limit }: { raffle?: number; limit: number }, command: Command) =>
      answer(command, (rescue) =>
        commands.showLogs(rescue, { limit, ...(raffle === undefined ? {} : { raffleId: raffle }) }),
      ),
    );
  program
    .command('verify-audit')
    .description('walks the hash chain of the audit trail; exit code 2 when it is broken')
    .action((_options: object, command: Command) => answer(command, commands.verifyAudit));
  for (const command of program.commands) command.option('--json', 'answer with one JSON object');
  return program;
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

const raffleNumber = (text: string): number | null => (text === '-' ? null : wholeNumber(text));

function prize(text: string): number {
  const xlm = Number(text);
  if (!Number.isFinite(xlm) || xlm < 0) throw new InvalidArgumentError('expected an amount in XLM');
  return xlm;
}

if (require.main === module) void rescueCommand().parseAsync();
