import { z } from 'zod';

const expectation = (min: number, max: number): string => `expected a whole number from ${min} to ${max}`;

/** A number of a JSON body. One text for all that can be wrong with it. */
export function wholeNumber(min: number, max: number): z.ZodType<number> {
  const words = expectation(min, max);
  return z
    .number({ error: ({ input }) => (input === undefined ? 'is required' : words) })
    .refine((value) => Number.isInteger(value) && value >= min && value <= max, { error: words });
}

/** A number in a query, where everything is text: decimal digits and nothing else, so that "" and "1e3" are none. */
export function wholeNumberText(min: number, max: number) {
  const words = expectation(min, max);
  return z
    .string({ error: ({ input }) => (input === undefined ? 'is required' : `${words}, once`) })
    .refine((text) => /^\d{1,16}$/.test(text) && Number(text) >= min && Number(text) <= max, { error: words })
    .transform(Number);
}
