import { countFiles, type Comparison, type Receipt } from "../../domain/receipt.ts";
import { boundReceipt } from "./bound-receipt.ts";
import type { Places } from "./tool-files.ts";
import type { TurnFacts } from "./turn-reader.ts";

/** Puts the receipt of a turn together: the comparison of its folders, and the facts that its events show. */

export interface Sight extends Omit<Places, "outOfSight"> {
  readonly turn: number;
  readonly facts: TurnFacts;
  /** Absent if the folders were not compared, for the reason in `why`; without a reason, nothing was to be seen. */
  readonly comparison: Comparison | undefined;
  readonly why?: string;
  /** Number of background tasks that run at the end of the turn. Default: the last number in the turn's events. */
  readonly background?: number;
  readonly others: number;
  readonly between: number;
}

type Compared = Omit<Comparison, "after" | "outOfSight">;

export function buildReceipt({
  background,
  between,
  comparison,
  cwd,
  facts,
  others,
  turn,
  why,
  ...sight
}: Sight): Receipt {
  const { after: _, outOfSight = [], own: __, ...compared } = comparison ?? uncompared(why);
  const seen = compared.folders.flatMap(({ kind, path }) => (kind === "unseen" ? [] : [path]));
  const places: Places = { cwd, folders: [...sight.folders, ...seen], outOfSight: new Set(outOfSight) };
  const files = facts.files.mergeInto(compared, places);
  const running = background ?? facts.background ?? 0;
  const receipt: Receipt = {
    turn,
    ...compared,
    complete: compared.complete && facts.files.omitted === 0,
    files,
    notSeen: [...compared.notSeen, ...unseenBy(facts, compared, running)],
    outside: facts.files.outside(places),
    commands: [...facts.commands],
    requests: [...facts.requests],
    denied: facts.denied,
    background: running,
    others,
    between,
    leftOut: 0,
  };
  const leftOut = facts.ran.ran - facts.commands.length + facts.requestsOmitted;
  return boundReceipt(receipt, { ...countFiles(files), ...facts.ran }, leftOut);
}

function uncompared(why: string | undefined): Comparison {
  const empty = { folders: [], files: [], commits: [], gitFiles: [], after: { folders: [] } };
  return { by: "tools", complete: why === undefined, notSeen: why === undefined ? [] : [why], ...empty };
}

/** Returns sentences on work of the turn whose effects are out of sight. */
function unseenBy({ files, hooks, mcpTools, ran }: TurnFacts, { by, folders }: Compared, running: number): string[] {
  const hasGit = by === "tree" && folders.some(({ kind }) => kind === "git");
  const mayWrite = ran.ran > 0 || mcpTools.length > 0 || hooks.length > 0;
  return [
    ...(ran.ran > 0 ? ["Effects of commands outside the session's folders are not looked for."] : []),
    ...(hasGit && mayWrite ? ["Files that git ignores are listed only if a tool reports a change."] : []),
    ...(mcpTools.length > 0 ? [`Tools of MCP servers can have effects elsewhere: ${mcpTools.join(", ")}.`] : []),
    ...(hooks.length > 0 ? [`Hooks ran, which can change commands and their results: ${hooks.join(", ")}.`] : []),
    ...(running > 0 ? ["Background tasks still run; their later changes count for a later turn."] : []),
    ...(files.omitted > 0 ? [`${String(files.omitted)} changes of files by tools are not listed.`] : []),
  ];
}
