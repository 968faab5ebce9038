import { invalidArgument } from "../domain/error.ts";
import { type Identity, isSameIdentity } from "../domain/process.ts";
import type { AgentProcess, AgentRuntime, AgentStart, CheckRunner, StartPlan, StartRequest } from "../engine/ports.ts";
import { createFolderWatch } from "./watch/folder-watch.ts";
import { createCheckRunner } from "./checks/check-runner.ts";
import { checkAllPlaces, checkOrigin } from "./preflight/session-paths.ts";
import { readImages } from "./preflight/images.ts";
import { checkOutputSchema } from "./preflight/output-schema.ts";
import { checkAddedVariables, configFolder, identify, withUnread } from "./child-environment.ts";
import type { Variables } from "./environment-records.ts";
import { checkShell } from "./preflight/git-bash.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { checkModels, checkSkills } from "./sdk-options.ts";
import { loadSdk, sdkFile } from "./sdk.ts";
import { checkSandboxedOptions, claudeOptions } from "./sandbox/sandboxed-options.ts";
import { planLaunch, planReattach, buildSpareSpec } from "./launch-plan.ts";
import { findClosedPaths } from "./restrictions.ts";
import {
  buildEnvironment,
  environmentIn,
  isSandboxed,
  allowedPlaces,
  requireRecord,
  sessionMasks,
  type ClaudeDependencies,
  type PlacedStart,
} from "./dependencies.ts";
import { hasProfile, profileOf, readSecrets } from "./profile-environment.ts";
import { readAccount, readIdentity } from "./account.ts";
import { ClaudeProcess } from "./process/claude-process.ts";
import type { LaunchPlan } from "./process/launch.ts";
import { relationWithoutShims, type Shims } from "./shim/shims.ts";
import { explainGone } from "./shim/why-gone.ts";
import { SparePool, type SpareRecipe } from "./spares/pool.ts";
import { Spare } from "./spares/spare.ts";
import type { SpareSpec } from "./spares/spec.ts";
import { sessionFiles } from "./session-files.ts";
import { endAllLeftovers, endLeftover } from "./supervise/leftover-processes.ts";
import { logTrackingMethod } from "./supervise/isolation.ts";
import { Spawner } from "./supervise/spawn.ts";
import { findSession, findOpenProcess } from "./folder/find.ts";
import { exists, fileAccess } from "../security/files/limited.ts";
import { isExecutable } from "../security/find-program.ts";

/** Time limit of `endAllLeftovers`, ms. */
const LEFTOVERS_MS = 5000;

export interface ClaudeRuntime extends AgentRuntime {
  readonly shims: Shims | undefined;
  readonly checks: CheckRunner;
  readonly spares: Pick<SparePool, "available" | "retire" | "fillWhenQuiet">;
  /** Starts reaper and shim ahead of the first session. Afterwards the program's files may be deleted. */
  readonly startGuards: () => Promise<void>;
}

/** Runs Claude Code through the Agent SDK, which is loaded with the first session. */
export function claudeRuntime(config: ClaudeDependencies): ClaudeRuntime {
  const { guards, log, server, shim } = config;
  const spawner = new Spawner({ guards, server, shim });
  const { shims } = spawner;
  logTrackingMethod(spawner.trackingMethod, log);
  const spares = createSparePool(config, spawner);
  const checks = createCheckRunner(config, spawner);
  const running = new Set<ClaudeProcess>();
  const run = (request: AgentStart, launch: Promise<LaunchPlan>): AgentProcess => {
    const { epoch, onPartial, processTag, transcriptId } = request;
    const masks = sessionMasks(request, config);
    const recipe = createRecipe(request, config);
    const onSignal: AgentStart["onSignal"] = (signal, line) => {
      request.onSignal(signal, line);
      if (signal.type === "ready") spares.fillWhenQuiet();
      if (signal.type === "idle") spares.remember(recipe, request.hasFreeSlot);
    };
    const stir = () => spares.fillWhenQuiet();
    request.admitted.then(stir, stir);
    const about = { transcriptId, epoch, isAttached: "reattach" in request };
    const agent = new ClaudeProcess({ launch, ...about, onSignal, onPartial, ...masks });
    running.add(agent);
    // A session given up before its start leaves its spare unclaimed.
    const forget = async () => spares.drop(processTag).finally(() => running.delete(agent));
    void agent.ended.then(forget, forget);
    return agent;
  };
  const endLeft = createEndLeftover(shims, server.store);
  return {
    shims,
    checks,
    folders: createFolderWatch(config),
    startGuards: async () => spawner.startGuards(),
    spares,
    environments: sessionEnvironments(config),
    ...sessionFiles(config),
    plan: async (request) => plan(request, config, spares),
    checkFolders: async (...request) => checkFolders(request, config),
    attach: async (...request) => readAttachments(request, config),
    find: async (...request) => findSessionFolder(request, config),
    installMissing: async ({ environmentId, options: { pathToClaudeCodeExecutable: ownClaude } }, onProgress) =>
      config.installer.install({ environment: requireRecord(config, environmentId), ownClaude }, onProgress),
    start: (request) => run(request, planLaunch(request, config, { spares, spawner })),
    ...shimQueries(shims, shim),
    leaseRenewed: (forMs) => spawner.leaseRenewed(forMs),
    reattach: (request) =>
      run(request, planReattach(request, config, { endLeftover: async () => endLeft(request), spawner })),
    endLeftover: endLeft,
    endAllLeftovers: async () => endAllLeftovers(server.store, LEFTOVERS_MS),
    drain: async () => {
      const ended = [...running].map(async (agent) => agent.ended.then(() => agent.forget()));
      await Promise.all([checks.close(), spares.close(), ...ended]);
      await shims?.close();
    },
  };
}

function sessionEnvironments(config: ClaudeDependencies): AgentRuntime["environments"] {
  const { environments } = config;
  // No process can start without its profile: the session then has no identity here, as without an environment.
  const identityOf = (variables: Variables, session: Pick<PlacedStart, "options" | "principal">) =>
    hasProfile(config, session) ? identityIn(config, environmentIn(config, variables, session), session) : undefined;
  return {
    identityOf: (environmentId, principal, options) => {
      const record = environments.get(environmentId);
      return record && identityOf(record, { principal, options });
    },
    accountOf: async (environmentId, principal, options) => {
      const session = { principal, options };
      const record = environments.get(environmentId);
      // Without its files, the account of a profile is unknown. The start of a process names the unusable file.
      const secrets = await readSecrets(config, session).catch(() => undefined);
      return record && secrets && readAccount({ ...environmentIn(config, record, session), ...secrets });
    },
    hold: (sessionId, environmentId) => environments.hold(sessionId, environmentId),
    keepWhile: (isAtWork) => environments.keepWhile(isAtWork),
    find: async (identity, session, ...until) =>
      environments.find(
        (variables) => {
          const found = identityOf(variables, session);
          return found !== undefined && isSameIdentity(found, identity);
        },
        ...until,
      ),
  };
}

/** Returns the identity without `payer`, which needs files. */
function identityIn(
  config: ClaudeDependencies,
  environment: Variables,
  session: Pick<PlacedStart, "options" | "principal">,
): Identity {
  const { node } = config;
  return { ...identify(withUnread(environment, profileOf(config, session))), ...(node !== undefined && { node }) };
}

function createSparePool(
  { log, installer: preparation, spareIdleMs: idleMs, spares: size }: ClaudeDependencies,
  spawner: Spawner,
): SparePool {
  const begin = async (spec: SpareSpec): Promise<Spare> => {
    await spawner.ready();
    return new Spare(spec, { prewarm: preparation.sdk().prewarm, spawner });
  };
  return new SparePool({ size, idleMs, begin, log });
}

/** Keeps only the fields of the session that spares depend on, because the session may end before its spares. */
function createRecipe(
  { environmentId, options, policy, principal }: AgentStart,
  config: ClaudeDependencies,
): SpareRecipe {
  const start = { environmentId, options, policy, principal };
  return async () => buildSpareSpec(start, config);
}

/** Answers queries about shims of former servers. */
function shimQueries(shims: Shims | undefined, server: ClaudeDependencies["shim"]) {
  return {
    shimRelation: async (process) => (await shims?.relationTo(process)) ?? relationWithoutShims(process),
    whyGone: async (tag, process) => explainGone({ tag, process, server }),
  } satisfies Pick<AgentRuntime, "shimRelation" | "whyGone">;
}

/** Ends the process in its shim first, so that the shim forgets the process. */
function createEndLeftover(shims: Shims | undefined, store: string): AgentRuntime["endLeftover"] {
  return async (leftover) => {
    await shims?.end(leftover.processTag);
    await endLeftover(leftover, store);
  };
}

async function plan(request: StartRequest, config: ClaudeDependencies, spares: SparePool): Promise<StartPlan> {
  const { goesOnWith, isNew = false } = request;
  const environment = buildEnvironment(config, request);
  // Before a process starts: an unusable file is then refused, not the reason for a failed turn.
  const secrets = isNew || goesOnWith !== undefined ? await readSecrets(config, request) : undefined;
  await checkStart(request, environment, config);
  const open = goesOnWith === undefined ? undefined : await findOpenProcess(goesOnWith, configFolder(environment));
  // Reserves last, so that a refused request keeps no spare.
  const spec = isNew && spares.available > 0 ? await buildSpareSpec(request, config) : undefined;
  const identity = secrets
    ? await readIdentity({ ...environment, ...secrets }, config)
    : identityIn(config, environment, request);
  return { identity, openIn: open, spareId: spec && spares.reserve(spec.key) };
}

async function findSessionFolder(
  [sessionId, by]: Parameters<AgentRuntime["find"]>,
  config: ClaudeDependencies,
): ReturnType<AgentRuntime["find"]> {
  const found = await findSession(sessionId, configFolder(buildEnvironment(config, by)));
  if (!found) return undefined;
  for (const { allowDirs } of allowedPlaces(config, by).all) await checkOrigin("sessionId", found.cwd, allowDirs);
  return found;
}

async function checkFolders(
  [session, folders]: Parameters<AgentRuntime["checkFolders"]>,
  config: ClaudeDependencies,
): ReturnType<AgentRuntime["checkFolders"]> {
  const { cwd } = session.options;
  const closed = await findClosedPaths({ cwd }, buildEnvironment(config, session), config);
  const asked = { cwd, additionalDirectories: [...folders] };
  const { additionalDirectories = [] } = await checkAllPlaces(asked, allowedPlaces(config, session).all, closed);
  return additionalDirectories;
}

/** Reads images, within the folders allowed by every set of terms of the session. */
async function readAttachments(
  [session, sources]: Parameters<AgentRuntime["attach"]>,
  config: ClaudeDependencies,
): ReturnType<AgentRuntime["attach"]> {
  const { cwd } = session.options;
  const closed = await findClosedPaths({ cwd }, buildEnvironment(config, session), config);
  const bounds = allowedPlaces(config, session).all.filter(({ allowDirs }) => allowDirs.length > 0);
  for (const { allowDirs: roots } of bounds.slice(1)) await readImages(sources, cwd, { roots, closed });
  return readImages(sources, cwd, { roots: bounds[0]?.allowDirs ?? [], closed });
}

async function checkStart(
  request: StartRequest,
  environment: Record<string, string>,
  config: ClaudeDependencies,
): Promise<void> {
  const { environmentId, isNew = false, options, policy } = request;
  checkAddedVariables(options.env);
  checkOutputSchema(options);
  checkSkills(options);
  if (isNew) checkModels(options);
  const closed = await findClosedPaths(options, environment, config);
  await checkAllPlaces(options, allowedPlaces(config, request).all, closed);
  if (isSandboxed(policy)) checkSandboxedOptions(isNew ? options : claudeOptions(options));
  const own = options.pathToClaudeCodeExecutable;
  if (own !== undefined && !(await isExecutable(own))) {
    fileAccess.check(own, "pathToClaudeCodeExecutable");
    throw invalidArgument(
      "pathToClaudeCodeExecutable",
      `${own} is not an executable file. Name the Claude Code binary.`,
    );
  }
  if (own === undefined) await config.claude.locate(requireRecord(config, environmentId));
  await checkShell({ platform: process.platform, environment, exists });
}

/** Loads the Agent SDK, if installed, before the first session needs the SDK. Ignores errors, which the session reports. */
export function preloadSdk(cacheFolder: string, environment: NodeJS.ProcessEnv): void {
  const packages = new PackageCache({ cacheFolder, environment });
  try {
    if (sdkFile(packages) !== undefined) loadSdk(packages);
  } catch {
    // The SDK's files may be damaged.
  }
}
