import { budgetKey, budgetOfKey, dayIn, LEDGER_PREFIXES, localDay, windowsIn } from "../domain/ledger.ts";
import { AppError } from "../domain/error.ts";
import type { PlanReserve } from "../domain/plan.ts";
import { LOCAL_PRINCIPAL, type Caller, type Principal } from "../domain/principal.ts";
import type { SessionUse } from "../engine/api.ts";
import { nodeState, presentNodes } from "../engine/nodes.ts";
import { budgetUse } from "../engine/session/use.ts";
import type { LedgerEntry, SessionRecord } from "../engine/ports.ts";
import type { Sources } from "./sources.ts";
import type { AccountUse, BudgetUse, NodeList, PlanUse } from "./wire-usage.ts";

/** Plan windows, budgets and nodes, as shown on the page. */

/** Numbers of sessions looked at, of the caller and of each other principal with spending, and of such principals. */
const [OWN_SESSIONS, OTHER_SESSIONS, MAX_PRINCIPALS] = [200, 20, 50];

type PlanSources = Pick<Sources, "engine"> & { readonly store: Pick<Sources["store"], "ledger"> };

/** Newest session of those with the same payer and terms. `use` is `undefined` if this server cannot tell it. */
interface Payer {
  readonly record: SessionRecord;
  readonly use: SessionUse | undefined;
}

/** Reads the accounts and budgets of the caller's sessions; for the operator, all that the servers of the store know. */
export async function readPlan(
  { engine, store: { ledger } }: PlanSources,
  caller: Caller,
  now = Date.now(),
): Promise<PlanUse> {
  const { principal } = caller;
  const seesAll = isOperator(caller);
  const today = localDay(now);
  const [accounts, days, own] = await Promise.all([
    ledger.list(LEDGER_PREFIXES.account),
    ledger.list(`${LEDGER_PREFIXES.budget}${today}:`),
    readPayers(engine, principal, OWN_SESSIONS),
  ]);
  const others = seesAll ? principalsOf(days).filter((name) => name !== principal) : [];
  const more = others.slice(0, MAX_PRINCIPALS).map(async (name) => readPayers(engine, name, OTHER_SESSIONS));
  const payers = [...own, ...(await Promise.all(more)).flat()];
  return {
    accounts: accountsOf(accounts, payers, seesAll),
    budgets: budgetsOf(seesAll ? days : [], payers, today),
  };
}

function isOperator({ principal, scopes }: Caller): boolean {
  return principal === LOCAL_PRINCIPAL || scopes.includes("admin");
}

/** Reads the nodes of the store, for operators. */
export async function readNodes({ store: { machines } }: Pick<Sources, "store">, caller: Caller): Promise<NodeList> {
  const nodes = machines && isOperator(caller) ? presentNodes(await machines.nodes()) : [];
  return {
    nodes: nodes.map((node) => {
      const { labels, maxLive, name, nodeId, seenAt, sessions, version } = node;
      const sharedFolders = node.sharedFolders.map(({ folder }) => folder);
      const about = { nodeId, name, state: nodeState(node), version, labels, sharedFolders };
      return { ...about, sessions, maxLive, seenAt };
    }),
  };
}

function principalsOf(days: readonly LedgerEntry[]): Principal[] {
  return days.flatMap(({ key }) => {
    const budget = budgetOfKey(key);
    return budget?.scope === "principal" ? [budget.name] : [];
  });
}

async function readPayers(engine: Sources["engine"], principal: Principal, limit: number): Promise<Payer[]> {
  const newest = new Map<string, SessionRecord>();
  for (const record of await engine.list({ principal, limit })) {
    const { spec, state } = record;
    const terms = JSON.stringify([
      state.identity?.configFolder,
      state.identity?.paidBy,
      accountIdIn(record),
      spec.profile,
    ]);
    if (!newest.has(terms)) newest.set(terms, record);
  }
  return Promise.all([...newest.values()].map(async (record) => ({ record, use: await readUse(engine, record) })));
}

/** Resolves to `undefined` for a session that was deleted meanwhile, or cannot be read here. */
async function readUse(engine: Sources["engine"], { id, principal }: SessionRecord): Promise<SessionUse | undefined> {
  try {
    return await engine.use(principal, id);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}

/** Returns the account that has reported a window to the present process of the session, if any. */
function accountIdIn({ state: { process } }: SessionRecord): string | undefined {
  return process.phase === "none" ? undefined : process.accountId;
}

function accountsOf(entries: readonly LedgerEntry[], payers: readonly Payer[], seesAll: boolean): AccountUse[] {
  const known = new Set(payers.flatMap(({ record, use }) => use?.account?.id ?? accountIdIn(record) ?? []));
  const stored = entries.flatMap(({ key, value }): AccountUse[] => {
    const [id, windows] = [key.slice(LEDGER_PREFIXES.account.length), windowsIn(value)];
    return windows && (seesAll || known.has(id)) ? [{ id, hasWindows: true, ...windows }] : [];
  });
  const reported = payers.flatMap(({ use }) => use?.account ?? []);
  const all = new Map<string, AccountUse>([...reported, ...stored].map((account) => [account.id, account]));
  return [...all.values()].map((account) => {
    const reserve = reserveOf(account, payers);
    return { ...account, ...(reserve && { reserve }) };
  });
}

/** Returns the largest reserves of the sessions that the account pays for, by identity if this server knows no more. */
function reserveOf({ configFolder, id, paidBy }: AccountUse, payers: readonly Payer[]): PlanReserve | undefined {
  const reserves = payers.flatMap(({ record: { state }, use }) => {
    const { account, reserve } = use ?? {};
    const isSame = state.identity?.configFolder === configFolder && state.identity.paidBy === paidBy;
    return reserve && (account ? account.id === id : isSame) ? [reserve] : [];
  });
  if (reserves.length === 0) return undefined;
  const largest = (name: "fiveHour" | "sevenDay") => Math.max(...reserves.map((reserve) => reserve[name] ?? 0));
  return { fiveHour: largest("fiveHour"), sevenDay: largest("sevenDay") };
}

/** Adds the bounds that sessions tell to the spending in the ledger. */
function budgetsOf(days: readonly LedgerEntry[], payers: readonly Payer[], today: string): BudgetUse[] {
  const spent = days.flatMap(({ key, value }): [string, BudgetUse][] => {
    const budget = budgetOfKey(key);
    return budget ? [[key, budgetUse({ scope: budget.scope, name: budget.name }, dayIn(value))]] : [];
  });
  const bound = payers.flatMap(({ use }) => use?.budgets ?? []).map((use) => [budgetKey(use, today), use] as const);
  return [...new Map<string, BudgetUse>([...spent, ...bound]).values()];
}
