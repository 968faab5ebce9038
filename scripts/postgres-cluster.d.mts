/** A PostgreSQL server. `bin` is the folder of its programs; `user` may do everything. */
export interface PostgresServer {
  readonly bin: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
}

export class Cluster implements PostgresServer {
  readonly bin: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  /** Folder of the data and the log. */
  readonly folder: string;
  static start(settings?: readonly string[], parent?: string): Promise<Cluster>;
  start(): Promise<void>;
  stop(signal?: "INT" | "QUIT"): Promise<void>;
  log(): string;
  remove(): Promise<void>;
}

export function freePort(): Promise<number>;
