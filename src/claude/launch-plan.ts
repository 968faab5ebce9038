import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { homedir } from "node:os";
import { delimiter } from "node:path";
import { RESUME } from "../domain/reserved-variables.ts";
import { malformedRules } from "../domain/approvals/malformed-rule.ts";
import type { Places } from "../domain/approvals/session-policy.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { AgentReattach, AgentSignal, AgentStart } from "../engine/ports.ts";
import { readAccount, readIdentity } from "./account.ts";
import { checkAllPlaces } from "./preflight/session-paths.ts";
import { BASH_VARIABLE, NO_BASH, windowsShell } from "./preflight/git-bash.ts";
import { configFolder, credentialOf, identify } from "./child-environment.ts";
import { planSandbox, isNamedByAll } from "./sandbox/sandbox.ts";
import { planResume } from "./folder/transcript.ts";
import { projectAllowRules, createEmptyProject, isTrustedByAll, findExecutableSettings } from "./folder/trust.ts";
import { toSdkOptions } from "./sdk-options.ts";
import { continueAttached, requireAgent, startFresh, type LaunchPlan } from "./process/launch.ts";
import type { Folders } from "./risk/named-paths.ts";
import { deniedBy } from "./process/permissions.ts";
import { findClosedPaths, sessionDenyRules, buildRestrictions } from "./restrictions.ts";
import { parseRules } from "./rules.ts";
import { endAttached, TakenOverError } from "./shim/shimmed-handle.ts";
import {
  buildEnvironment,
  isSandboxed,
  allowedPlaces,
  requireRecord,
  sessionMasks,
  type ClaudeDependencies,
} from "./dependencies.ts";
import type { Variables } from "./environment-records.ts";
import { profileOf, readSecrets, secretsIn } from "./profile-environment.ts";
import { splitForSpare, type SpareSpec } from "./spares/spec.ts";
import type { SparePool } from "./spares/pool.ts";
import type { Spawner } from "./supervise/spawn.ts";
import { hasHoldingHooks } from "./version.ts";
import { exists } from "../security/files/limited.ts";

/** Turns session options into a process: settings to read, environment, and where to resume. */

interface BaseOptions {
  /** SDK options without resume position and callbacks. */
  readonly options: Options & { env: Record<string, string> };
  readonly notices: Notice[];
}

type Start = Pick<AgentStart, "environmentId" | "options" | "policy" | "principal">;

/** `secrets` are the variables of the session's profile. */
async function buildBaseOptions(start: Start, config: ClaudeDependencies, secrets: Variables): Promise<BaseOptions> {
  const { environmentId, options, policy } = start;
  const { all } = allowedPlaces(config, start);
  const { environment, notices } = await addGitBash({ ...buildEnvironment(config, start), ...secrets });
  const sources = options.settingSources ?? ["user", "project", "local"];
  const usesProject = sources.includes("project") || sources.includes("local");
  const rules = parseRules(policy);
  const sandboxPolicy = isSandboxed(policy) ? await config.protection.sandbox(policy) : undefined;
  const sandboxed = sandboxPolicy && (await planSandbox({ options, environment, sandboxPolicy, rules }));
  const trusts = async () =>
    sandboxPolicy ? isNamedByAll(options.cwd, all) : isTrustedByAll(options.cwd, all, environment);
  const isTrusted = await trusts();
  const mayRun = !usesProject || isTrusted;
  const allow = await projectAllowRules({ ...options, mayRun, isSandboxed: isSandboxed(policy) }, all);
  const { path: executable, holds } = await locateClaude(options, config, environmentId);
  return {
    notices: [...(mayRun ? [] : await untrustedNotices(options.cwd, all)), ...malformedNotices(options), ...notices],
    options: {
      ...toSdkOptions(options),
      ...(executable !== undefined && { pathToClaudeCodeExecutable: executable }),
      // Otherwise prompts of `.claude/scheduled_tasks.json` run, whatever `settingSources` says.
      ...(!isTrusted && { projectConfigRoot: await createEmptyProject(environment) }),
      ...(await buildRestrictions({ options, policy, environment, sandboxed, allow, canHold: holds }, config)),
      ...(sandboxed && { sandbox: sandboxed.sandbox }),
      env: sandboxed?.environment ?? environment,
    },
  };
}

/** Treats the version of a caller's own executable as unknown, so `holds` is false. */
async function locateClaude(
  { pathToClaudeCodeExecutable: own }: SessionOptions,
  config: ClaudeDependencies,
  environmentId: string,
) {
  if (own !== undefined) return { path: own, holds: false };
  const { path, version } = await config.claude.locate(requireRecord(config, environmentId));
  return { path, holds: hasHoldingHooks(version) };
}

/** Returns the spec of a spare for sessions like `start`. */
export async function buildSpareSpec(start: Start, config: ClaudeDependencies): Promise<SpareSpec | undefined> {
  const secrets = await readSecrets(config, start);
  const base = await buildBaseOptions(start, config, secrets);
  return (await splitForSpare(spareTraits(start, config, secrets), base.options))?.spec;
}

/** Returns the properties of a spare beside session options. `record` has the secrets, so that the next owner masks them. */
function spareTraits(start: Start, config: ClaudeDependencies, secrets: Variables) {
  const { environmentId, principal } = start;
  const { spawnWrapper: wrapper } = allowedPlaces(config, start).own;
  return { principal, wrapper, record: { ...requireRecord(config, environmentId), ...secrets } };
}

export async function planLaunch(
  request: AgentStart,
  config: ClaudeDependencies,
  { spares, spawner }: { spares: SparePool; spawner: Spawner },
): Promise<LaunchPlan> {
  await request.admitted;
  const { epoch, processTag, sessionId } = request;
  const secrets = await readSecrets(config, request);
  const { base, options, plan } = await planCommonPart(request, config, secrets);
  const { env } = base.options;
  const resumePlan = await planResume(request, configFolder(env));
  const { query } = config.installer.sdk();
  const again = resumePlan.runsAgain && { [RESUME]: "1" };
  const spare = spareTraits(request, config, secrets);
  const { record, wrapper } = spare;
  const fresh = startFresh(
    query,
    { ...base.options, ...resumePlan.options, env: { ...env, ...again } },
    (process, onSpawned) => spawner.spawn(process, onSpawned, { name: processTag, wrapper, epoch, record }),
  );
  const split = spares.has(processTag) ? await splitForSpare(spare, base.options) : undefined;
  await spawner.ready();
  return {
    ...plan,
    // Claims the spare only now, because the session could be given up before.
    start: requireAgent(options.agent, async (bound) => {
      const taken = await spares.take(processTag, split?.spec.key);
      return taken && split ? taken.claimOrStart(fresh, split.claim, bound) : fresh(bound);
    }),
    giveUp: async () => spares.drop(processTag),
    resumed: resumePlan.resumed,
    missing: resumePlan.missing,
    notices: [...base.notices, ...payerNotices(config.environments.paysAnew(sessionId, credentialOf(env)), env)],
  };
}

/**
 * Attaches to a process left in a shim by a former server. On failure, ends the process, unless another server has taken the
 * process over (`TakenOverError`), and rejects with the reason.
 */
export async function planReattach(
  request: AgentReattach,
  config: ClaudeDependencies,
  parts: { readonly endLeftover: () => Promise<void>; readonly spawner: Spawner },
): Promise<LaunchPlan> {
  try {
    return await attachedPlan(request, config, parts);
  } catch (error) {
    if (!(error instanceof TakenOverError)) await parts.endLeftover();
    throw error;
  }
}

async function attachedPlan(
  request: AgentReattach,
  config: ClaudeDependencies,
  { spawner }: Parameters<typeof planReattach>[2],
): Promise<LaunchPlan> {
  await request.admitted;
  const { options, processTag, reattach, sessionId, transcriptId } = request;
  const { environments } = config;
  const attachment = await spawner.attach(processTag, reattach);
  // Before any output is read, because `recovered` registers the secrets to mask.
  const environmentId = environments.recovered(sessionId, attachment.record, options.env);
  const attached = async () =>
    planCommonPart({ ...request, environmentId }, config, secretsIn(attachment.record, profileOf(config, request)));
  const { base, plan } = await attached().catch(async (error: unknown) => {
    await endAttached(attachment);
    throw error;
  });
  environments.paysAnew(sessionId, credentialOf(base.options.env));
  const { query } = config.installer.sdk();
  const { changes, open, spoken } = reattach;
  return {
    ...plan,
    denying: [...plan.denying, ...deniedBy(changes)],
    start: continueAttached(query, { ...base.options, sessionId: transcriptId }, attachment),
    giveUp: async () => endAttached(attachment),
    resumed: true,
    missing: [],
    // The starting cost was reported by the server that started the process.
    watchCost: plan.watchCost === "always" ? "always" : "never",
    notices: [],
    attached: { open, spoken, lost: attachment.lost, environmentId },
  };
}

/** Computes the part of a plan that starting and attaching have in common. */
async function planCommonPart(request: AgentStart, config: ClaudeDependencies, secrets: Variables) {
  const { isMoved = false, origin, policy } = request;
  sessionMasks(request, config, secrets);
  const { all } = allowedPlaces(config, request);
  // Repeats the check as late as possible, because a link may lead elsewhere by now.
  const closed = await findClosedPaths(request.options, buildEnvironment(config, request), config);
  const options = await checkAllPlaces(request.options, all, closed);
  const base = await buildBaseOptions({ ...request, options }, config, secrets);
  const watchCost = request.watchesCost ? "always" : origin || isMoved ? "at-start" : "never";
  const plan = {
    folders: await resolveFolders(options, base.options.env, config),
    denying: sessionDenyRules(options),
    allowsCommands: (options.allowedTools ?? []).some((rule) => /^Bash(?:\(:?\*\))?$/.test(rule)),
    isSandboxed: isSandboxed(policy),
    configFolder: configFolder(base.options.env),
    account: await readAccount(base.options.env),
    identity: await readIdentity(base.options.env, config),
    expectsStructured: options.outputFormat !== undefined,
    watchCost,
  } satisfies Partial<LaunchPlan>;
  return { base, options, plan };
}

/** Returns the folders that requests of a session are judged by. */
export async function resolveFolders(
  { additionalDirectories = [], cwd }: Pick<SessionOptions, "additionalDirectories" | "cwd">,
  env: Record<string, string>,
  config: ClaudeDependencies,
): Promise<Folders> {
  const closed = await findClosedPaths({ cwd }, env, config);
  // An empty entry of `PATH` means the current folder.
  const programs = (env["PATH"] ?? env["Path"])?.split(delimiter) ?? [];
  return { cwd, additionalDirectories, home: env["HOME"] ?? env["USERPROFILE"] ?? homedir(), closed, programs };
}

type Notice = Extract<AgentSignal, { type: "notice" }>;

/** Adds the path of Git Bash to the environment, or a notice if only PowerShell was found. */
async function addGitBash(
  environment: Record<string, string>,
): Promise<{ environment: Record<string, string>; notices: Notice[] }> {
  const shell = await windowsShell({ platform: process.platform, environment, exists });
  if (shell.kind === "bash") return { environment: { ...environment, [BASH_VARIABLE]: shell.path }, notices: [] };
  const isMissing = shell.kind === "powershell only";
  return { environment, notices: isMissing ? [{ type: "notice", kind: "warning", message: NO_BASH }] : [] };
}

/** Notices for a session that was stored before malformed rules were refused. */
function malformedNotices(options: SessionOptions): Notice[] {
  return malformedRules(options).map(({ path, problem }) => {
    const message = `${path.join(".")}: ${problem} Claude Code does not apply it. Start a new session with the right rule.`;
    return { type: "notice", kind: "warning", message };
  });
}

/** Only the credential can differ: a different payer would have been refused. */
function payerNotices(paysAnew: boolean, env: Record<string, string>): Notice[] {
  if (!paysAnew) return [];
  const message = `The credential (${identify(env).paidBy}) has changed since the previous process.`;
  return [{ type: "notice", kind: "warning", message }];
}

async function untrustedNotices(cwd: string, all: readonly Places[]): Promise<Notice[]> {
  const files = await findExecutableSettings(cwd);
  if (files.length === 0) return [];
  const advice = all.every(({ trustsRecord }) => trustsRecord)
    ? "Trust it by opening it once in Claude Code, or start the server with --trust-dir."
    : "The operator of the server can trust it, with --trust-dir or trustDirs of the user.";
  const message = `${cwd} is not trusted: its settings, hooks and MCP servers are off; CLAUDE.md is read. ${advice}`;
  return [{ type: "notice", kind: "untrusted_directory", message, details: { files } }];
}
