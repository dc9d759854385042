#!/usr/bin/env node
import { Command } from 'commander';
import { eventsCommand } from './events';
import { rescueCommand } from './rescue';

/** The one command that a user installs: what looks after a running house. */
void new Command('sorolane')
  .description('Looks after Sorolane: its event queue, and raffle randomness that got stuck.')
  .addCommand(eventsCommand())
  .addCommand(rescueCommand())
  .parseAsync();
