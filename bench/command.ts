import { Command } from 'commander';

/** A benchmark's command line: --help, --json, and exit code 1 for what it doesn't know. Nothing may run before it is parsed. */
export const benchCommand = (name: string, description: string): Command =>
  new Command(`bench:${name}`)
    .description(description)
    .option('--json', 'print the figures as one JSON object on the last line of stdout', false)
    .showHelpAfterError('(--help explains each option)');
