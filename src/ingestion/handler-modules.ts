import path from 'node:path';
import { z } from 'zod';
import { PermanentError } from '../platform/errors';
import { defineEventHandler, type EventHandler, type EventHandlerDefinition } from './event-handler';

const moduleSchema = z.object({
  eventHandlers: z
    .array(
      z.looseObject({
        name: z.string(),
        handle: z.custom<EventHandlerDefinition['handle']>((value) => typeof value === 'function'),
      }),
    )
    .min(1),
});

/**
 * Handlers that a user keeps in files of their own. Each module exports `eventHandlers`, a list of what
 * {@link defineEventHandler} takes; it is named by a path (relative to the working directory) or as a package.
 * @throws PermanentError HANDLER_MODULE when one can't be loaded or exports something else.
 */
export async function loadHandlerModules(specifiers: readonly string[]): Promise<EventHandler[]> {
  const loaded = await Promise.all(specifiers.map(loadModule));
  return loaded.flat();
}

async function loadModule(specifier: string): Promise<EventHandler[]> {
  const isPath = specifier.startsWith('.') || path.isAbsolute(specifier);
  try {
    const exported: unknown = await import(isPath ? path.resolve(specifier) : specifier);
    const { eventHandlers } = moduleSchema.parse(exported);
    return eventHandlers.map((definition) =>
      defineEventHandler(definition as unknown as EventHandlerDefinition),
    );
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message;
    throw new PermanentError(
      'HANDLER_MODULE',
      `the event handlers in ${specifier} can't be used: ${reason}. It has to export eventHandlers, a list of definitions`,
      { cause: error },
    );
  }
}
