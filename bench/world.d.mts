export interface World {
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export function createWorld(): Promise<World>;
