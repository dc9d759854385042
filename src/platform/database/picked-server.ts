export type Engine = 'configured' | 'mongod' | 'embedded';

/** A database server for tests and trial, and how it came to be this one. */
export interface PickedServer {
  engine: Engine;
  uri: string;
  /** One line for a person: which server runs, and where it came from. */
  description: string;
  /** Why each server before it in the order of preference was not taken. */
  passedOver: string[];
  /** Stops what was started here; a server that was configured is left alone. */
  stop(): Promise<void>;
}

/** Where progress of a long wait goes; one line each. */
export type Say = (line: string) => void;
