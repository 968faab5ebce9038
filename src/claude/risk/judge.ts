import type { Ask } from "../../domain/permission.ts";
import { namedPaths, placesOf, type Folders } from "./places.ts";
import { isFileTool, OUTSIDE, riskOf } from "./risk.ts";

/** What there is to know of a request before anybody decides it. */
export type Judged = Pick<Ask, "cwd" | "paths" | "risk">;

export async function judgeAsk(ask: Ask, folders: Folders): Promise<Judged> {
  const { blockedPath, input, toolName } = ask;
  const isForFiles = isFileTool(toolName);
  const named = isForFiles ? namedPaths(toolName, input) : [];
  // What Claude Code itself has stumbled over counts as well.
  const all = [...(named ?? []), ...(blockedPath === undefined ? [] : [blockedPath])];
  const { cwd, places } = await placesOf(all, folders);
  const paths = [...new Set(places.flatMap(({ named: path, real = path }) => [path, real]))];
  const risk = riskOf({ toolName, input, places: named && places });
  const isOutside = !isForFiles && places.some(({ isInside }) => !isInside);
  return {
    risk: isOutside ? { level: "all", why: [...risk.why, OUTSIDE] } : risk,
    ...(paths.length > 0 && { paths }),
    ...(cwd !== folders.cwd && { cwd }),
  };
}
