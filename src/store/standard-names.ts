import { JsonObject } from "../domain/json.ts";

/** What version 2 of the stored JSON (format.ts) calls the fields of a state and of a policy, by their names before it. */
const NAMES: Readonly<Record<string, string>> = {
  askDeliveredMs: "requestDeliveredMs",
  askMaxMs: "requestMaxMs",
  askMs: "requestTimeoutMs",
  asks: "requests",
  askUnseenMs: "requestUnseenMs",
  ladder: "approvalChain",
  rung: "approver",
  rungEndsAt: "approverDeadline",
  rungLeftMs: "approverLeftMs",
  rungSince: "approverSince",
};

/** Keys whose value was filled in by a person. */
const FOREIGN = new Set(["filled"]);

/** Renames the fields of `old` at every depth. */
export function inStandardNames(old: JsonObject): JsonObject {
  // `rungMs` was the time limits of a policy, and in the clock of a request the time it has spent with its approver.
  const names = { ...NAMES, rungMs: "ladder" in old ? "approverTimeoutMs" : "approverMs" };
  return renamed(old, names);
}

function renamed(value: JsonObject, names: Readonly<Record<string, string>>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [names[key] ?? key, FOREIGN.has(key) ? field : inside(field, names)]),
  );
}

function inside(value: unknown, names: Readonly<Record<string, string>>): unknown {
  if (Array.isArray(value)) return value.map((item) => inside(item, names));
  const { data, success } = JsonObject.safeParse(value);
  return success ? renamed(data, names) : value;
}

/** The values of `restingFor` by their names before version 3. */
const REASONS: Readonly<Record<string, string>> = { barred: "forbidden", room: "slot" };

/** Version 3: a process is suspended, where a state of version 2 has it rest. */
export function inSuspendNames({ resting, restingFor, ...rest }: JsonObject): JsonObject {
  return {
    ...(resting !== undefined && { suspending: resting }),
    ...(typeof restingFor === "string" && { suspendReason: REASONS[restingFor] ?? restingFor }),
    ...rest,
  };
}
