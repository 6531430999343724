/** The key that the service's emulator has, and a server that is told no other. */
export declare const KEY: string;

export interface StartOptions {
  /** A folder to keep the data in; without it nothing is kept. */
  data?: string;
  /** The account key; the emulator's unless given. */
  key?: string;
  /** Further arguments of `astrarium serve`. */
  args?: string[];
  /** Longest time to wait for the server. */
  milliseconds?: number;
}

/** Where a server is, and what it said. */
export interface ServerAddress {
  /** What an SDK connects to, over plain HTTP. */
  readonly endpoint: string;
  /** The account key. */
  readonly key: string;
  /** Endpoint and key in one text. */
  readonly connectionString: string;
  /** What the server has logged so far. */
  readonly log: string;
}

/** A running server, which ends with stop() or with this process, however that ends. */
export declare class Server implements ServerAddress {
  private constructor();
  readonly endpoint: string;
  readonly key: string;
  readonly connectionString: string;
  readonly log: string;
  /** Ends the server in good order; kills it if that takes too long. */
  stop(milliseconds?: number): Promise<void>;
}

type Hook = (body: () => Promise<void>) => unknown;

/** Where the program is. */
export declare function binary(): string;
/** Starts a server on a free port of this machine, and waits until it is ready. */
export declare function start(options?: StartOptions): Promise<Server>;
/** A server for the tests of one file, by the hooks of the test runner. */
export declare function useServer(options?: StartOptions & { before?: Hook; after?: Hook }): ServerAddress;
