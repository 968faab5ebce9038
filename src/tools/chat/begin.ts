import type { z } from "zod";
import type { SessionOptions } from "../../domain/options.ts";
import type { ToolDeps } from "../define.ts";
import type { beginning } from "./fields.ts";

type Chosen = z.infer<z.ZodObject<typeof beginning>>;

export function conversationOptions(
  { cwd, model, permissionMode, systemPrompt }: Chosen,
  deps: ToolDeps,
): SessionOptions {
  return {
    cwd: cwd ?? deps.defaults.cwd(),
    ...(model !== undefined && { model }),
    ...(permissionMode !== undefined && { permissionMode }),
    ...(systemPrompt !== undefined && { systemPrompt }),
  };
}
