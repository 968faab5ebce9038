export interface World {
  close(): Promise<void>;
}

export function createWorld(): Promise<World>;
