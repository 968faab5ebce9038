// The plan of a subscription, as the API describes it in headers of its answers.
const HEADER = "anthropic-ratelimit-unified-";
const WINDOWS = { five_hour: "5h", seven_day: "7d", seven_day_overage_included: "7d_oi" };
const LIMITS = {
  five_hour: "5-hour limit",
  seven_day: "weekly limit",
  seven_day_opus: "Opus limit",
  seven_day_sonnet: "Sonnet limit",
};

/** True if a subscription pays: a key would pay before a token. */
export const hasPlan = !process.env.ANTHROPIC_API_KEY && Boolean(process.env.CLAUDE_CODE_OAUTH_TOKEN);

export const credential = hasPlan
  ? { authorization: `Bearer ${process.env.CLAUDE_CODE_OAUTH_TOKEN}` }
  : { "x-api-key": process.env.ANTHROPIC_API_KEY ?? "" };

/** Reads the headers of an answer; `undefined` without a subscription. */
export function planIn(headers, usualStatus) {
  if (!hasPlan) return undefined;
  const text = (name) => headers[HEADER + name];
  const number = (name) => (text(name) === undefined ? undefined : Number(text(name)));
  const status = text("status") ?? usualStatus;
  const overageStatus = text("overage-status");
  const inUse = text("overage-in-use");
  const info = {
    status: status === "allowed_warning" ? "allowed" : status,
    resetsAt: number("reset"),
    rateLimitType: text("representative-claim"),
    overageStatus,
    overageResetsAt: number("overage-reset"),
    overageDisabledReason: text("overage-disabled-reason"),
    isUsingOverage: status === "rejected" && (overageStatus ?? "rejected") !== "rejected",
    overageInUse: inUse === undefined ? undefined : inUse === "true",
    unifiedWindows: windowsIn(text, number),
  };
  return JSON.parse(JSON.stringify(info));
}

function windowsIn(text, number) {
  const all = Object.entries(WINDOWS).map(([name, header]) => {
    const [utilization, resetsAt] = [number(`${header}-utilization`), number(`${header}-reset`)];
    const threshold = number(`${header}-surpassed-threshold`);
    return [name, { utilization, resetsAt, status: text(`${header}-status`), surpassedThreshold: threshold }];
  });
  const known = all.filter(
    ([, { resetsAt, utilization }]) => utilization !== undefined && resetsAt * 1000 > Date.now(),
  );
  return known.length > 0 ? Object.fromEntries(known) : undefined;
}

/** True if the API has refused a request at a limit of the plan, rather than for a fault that passes. */
export function isLimit(info) {
  return info?.rateLimitType !== undefined || info?.overageStatus !== undefined;
}

/** Text in place of the answer that a limit has refused. */
export function limitText({ rateLimitType, resetsAt }) {
  const reset = resetsAt === undefined ? "" : ` · resets ${timeOf(new Date(resetsAt * 1000))}`;
  return `You've hit your ${LIMITS[rateLimitType] ?? (rateLimitType === undefined ? "limit" : "usage limit")}${reset}`;
}

function timeOf(at) {
  const minute = at.getMinutes() === 0 ? {} : { minute: "2-digit" };
  const day = at - Date.now() > 86_400_000 ? { month: "short", day: "numeric" } : {};
  const text = at.toLocaleString("en-US", { ...day, hour: "numeric", ...minute, hour12: true });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return `${text.replace(/\s(?=[AP]M)/, "").replace(/[AP]M/, (half) => half.toLowerCase())} (${zone})`;
}

/** Reports about the plan. Like Claude Code, reports only what has changed. */
export class PlanReports {
  #last;
  #emit;

  constructor(emit) {
    this.#emit = emit;
  }

  tell(info) {
    if (info === undefined) return;
    const text = JSON.stringify(info, (key, value) => (key === "utilization" ? Math.floor(value * 100) : value));
    if (text === this.#last) return;
    this.#last = text;
    this.#emit({ type: "rate_limit_event", rate_limit_info: info });
  }
}
