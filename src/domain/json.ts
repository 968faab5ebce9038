import { z } from "zod";

/** A JSON object whose inside is not ours to define: tool inputs, messages of Claude Code, settings. */
export const JsonObject = z.record(z.string(), z.unknown());
export type JsonObject = z.infer<typeof JsonObject>;
