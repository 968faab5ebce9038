export const KINDS: readonly string[];
