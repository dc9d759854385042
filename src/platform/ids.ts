/** A string that only its own maker can produce: a job id can't be passed where a lease token is wanted. */
export type Branded<Name extends string> = string & { readonly __brand: Name };
