import { invalidArgument } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Principal } from "../domain/principal.ts";
import type { AgentProcess, AgentRuntime, AgentStart, StartPlan, StartRequest } from "../engine/ports.ts";
import { checkAllPlaces, checkFolder, checkOrigin } from "./check/folders.ts";
import { readImages } from "./check/images.ts";
import { checkOutputSchema } from "./check/output-schema.ts";
import { checkAdded, childEnvironment, configFolder, identify } from "./environment.ts";
import type { Variables } from "./environments.ts";
import { checkShell } from "./check/git-bash.ts";
import { PackageCache } from "../packages/package-cache.ts";
import { checkModels, checkSkills } from "./sdk-options.ts";
import { loadSdk, sdkFile } from "./sdk.ts";
import { checkSandboxedOptions } from "./sandbox/sandboxed-options.ts";
import { prepare, prepareAttached, spareSpecFor } from "./prepare.ts";
import { closedTo } from "./restrictions.ts";
import { confinementOf, environmentOf, isSandboxed, placesOf, recordOf, type ClaudeSettings } from "./settings.ts";
import { ClaudeProcess } from "./process/claude-process.ts";
import type { LaunchPlan } from "./process/launch.ts";
import { standingWithout, type Shims } from "./shim/shims.ts";
import { whyGone } from "./shim/why-gone.ts";
import { SparePool, type Recipe } from "./spares/pool.ts";
import { Spare } from "./spares/spare.ts";
import type { SpareSpec } from "./spares/spec.ts";
import { workTreeOf } from "./work-tree.ts";
import { endAllLeftovers, endLeftover } from "./supervise/leftover-processes.ts";
import { logTrackingMethod } from "./supervise/isolation.ts";
import { Spawner } from "./supervise/spawn.ts";
import { findSession, openIn } from "./folder/find.ts";
import { exists, fileAccess } from "../security/files/limited.ts";
import { isExecutable } from "../security/programs.ts";

/** Time limit of `endAllLeftovers`, ms. */
const LEFTOVERS_MS = 5000;

export interface ClaudeRuntime extends AgentRuntime {
  readonly shims: Shims | undefined;
  readonly spares: Pick<SparePool, "available" | "retire" | "stir">;
  /** Starts reaper and shim ahead of the first session. Afterwards the program's files may be deleted. */
  readonly startGuards: () => Promise<void>;
}

/** Runs Claude Code through the Agent SDK, which is loaded with the first session. */
export function claudeRuntime(config: ClaudeSettings): ClaudeRuntime {
  const { guards, log, server, shim } = config;
  const spawner = new Spawner({ guards, server, shim });
  const { shims } = spawner;
  logTrackingMethod(spawner.trackingMethod, log);
  const spares = sparesOf(config, spawner);
  const running = new Set<ClaudeProcess>();
  const run = (request: AgentStart, launch: Promise<LaunchPlan>): AgentProcess => {
    const { epoch, onPartial, processTag, transcriptId } = request;
    const masks = masksFor(request, config);
    const recipe = recipeOf(request, config);
    const onSignal: AgentStart["onSignal"] = (signal, line) => {
      request.onSignal(signal, line);
      if (signal.type === "ready") spares.stir();
      if (signal.type === "idle") spares.remember(recipe, request.hasFreeSlot);
    };
    const stir = () => spares.stir();
    request.admitted.then(stir, stir);
    const about = { transcriptId, epoch, isAttached: "reattach" in request };
    const agent = new ClaudeProcess({ launch, ...about, onSignal, onPartial, ...masks });
    running.add(agent);
    // A session given up before its start leaves its spare unclaimed.
    const forget = async () => spares.drop(processTag).finally(() => running.delete(agent));
    void agent.ended.then(forget, forget);
    return agent;
  };
  const endLeft = leftoversOf(shims, server.store);
  return {
    shims,
    startGuards: async () => spawner.startGuards(),
    spares,
    environments: environmentsOf(config),
    plan: async (request) => plan(request, config, spares),
    checkFolders: async (...request) => checkFolders(request, config),
    attach: async (...request) => attach(request, config),
    find: async (...request) => find(request, config),
    workTree: async (...request) => workTree(request, config),
    installMissing: async ({ environmentId, options: { pathToClaudeCodeExecutable: ownClaude } }, onProgress) =>
      config.preparation.complete({ environment: recordOf(config, environmentId), ownClaude }, onProgress),
    start: (request) => run(request, prepare(request, config, { spares, spawner })),
    ...standingsOf(shims, shim),
    reattach: (request) =>
      run(request, prepareAttached(request, config, { endLeftover: async () => endLeft(request), spawner })),
    endLeftover: endLeft,
    endAllLeftovers: async () => endAllLeftovers(server.store, LEFTOVERS_MS),
    drain: async () => {
      const ended = [...running].map(async (agent) => agent.ended.then(() => agent.forget()));
      await Promise.all([spares.close(), ...ended]);
      await shims?.close();
    },
  };
}

/** Registers the environment of the process, so that its secrets are masked in the session's output. */
function masksFor({ environmentId, options, sessionId }: AgentStart, { environments, masksOf }: ClaudeSettings) {
  environments.hold(sessionId, environmentId, options.env);
  const masker = masksOf(sessionId);
  return { mask: (text: string) => masker.text(text), maskUnfinished: (text: string) => masker.unfinished(text) };
}

function environmentsOf(config: ClaudeSettings): AgentRuntime["environments"] {
  const { environments } = config;
  const identityOf = (variables: Variables, principal: Principal, { env: added = {} }: Pick<SessionOptions, "env">) => {
    const { configDir } = confinementOf(config, principal);
    return identify(childEnvironment(variables, { depth: config.depth, configDir, added }));
  };
  return {
    identityOf: (environmentId, principal, options) => {
      const record = environments.get(environmentId);
      return record && identityOf(record, principal, options);
    },
    hold: (sessionId, environmentId) => environments.hold(sessionId, environmentId),
    find: async ({ configFolder: folder, paidBy }, { options, principal }, ms) =>
      environments.find((variables) => {
        const found = identityOf(variables, principal, options);
        return found.configFolder === folder && found.paidBy === paidBy;
      }, ms),
  };
}

function sparesOf(
  { log, preparation, spareIdleMs: idleMs, spares: size }: ClaudeSettings,
  spawner: Spawner,
): SparePool {
  const begin = async (spec: SpareSpec): Promise<Spare> => {
    await spawner.ready();
    return new Spare(spec, { prewarm: preparation.sdk().prewarm, spawner });
  };
  return new SparePool({ size, idleMs, begin, log });
}

/** Keeps only the fields of the session that spares depend on, because the session may end before its spares. */
function recipeOf({ environmentId, options, policy, principal }: AgentStart, config: ClaudeSettings): Recipe {
  const start = { environmentId, options, policy, principal };
  return async () => spareSpecFor(start, config);
}

/** Answers queries about shims of former servers. */
function standingsOf(shims: Shims | undefined, server: ClaudeSettings["shim"]) {
  return {
    shimOf: async (process) => (await shims?.standing(process)) ?? standingWithout(process),
    whyGone: async (tag, process) => whyGone({ tag, process, server }),
  } satisfies Pick<AgentRuntime, "shimOf" | "whyGone">;
}

/** Ends the process in its shim first, so that the shim forgets the process. */
function leftoversOf(shims: Shims | undefined, store: string): AgentRuntime["endLeftover"] {
  return async (leftover) => {
    await shims?.end(leftover.processTag);
    await endLeftover(leftover, store);
  };
}

async function plan(request: StartRequest, config: ClaudeSettings, spares: SparePool): Promise<StartPlan> {
  const { goesOnWith, isNew = false } = request;
  const environment = environmentOf(config, request);
  await check(request, environment, config);
  const open = goesOnWith === undefined ? undefined : await openIn(goesOnWith, configFolder(environment));
  // Reserves last, so that a refused request keeps no spare.
  const spec = isNew && spares.available > 0 ? await spareSpecFor(request, config) : undefined;
  return { identity: identify(environment), openIn: open, spareId: spec && spares.reserve(spec.key) };
}

async function find(
  [sessionId, by]: Parameters<AgentRuntime["find"]>,
  config: ClaudeSettings,
): ReturnType<AgentRuntime["find"]> {
  const found = await findSession(sessionId, configFolder(environmentOf(config, by)));
  if (!found) return undefined;
  for (const { allowDirs } of placesOf(config, by).all) await checkOrigin("sessionId", found.cwd, allowDirs);
  return found;
}

async function checkFolders(
  [session, folders]: Parameters<AgentRuntime["checkFolders"]>,
  config: ClaudeSettings,
): ReturnType<AgentRuntime["checkFolders"]> {
  const { cwd } = session.options;
  const closed = await closedTo({ cwd }, environmentOf(config, session), config);
  const asked = { cwd, additionalDirectories: [...folders] };
  const { additionalDirectories = [] } = await checkAllPlaces(asked, placesOf(config, session).all, closed);
  return additionalDirectories;
}

/** Reads images, within the folders allowed by every set of terms of the session. */
async function attach(
  [session, sources]: Parameters<AgentRuntime["attach"]>,
  config: ClaudeSettings,
): ReturnType<AgentRuntime["attach"]> {
  const { cwd } = session.options;
  const closed = await closedTo({ cwd }, environmentOf(config, session), config);
  const bounds = placesOf(config, session).all.filter(({ allowDirs }) => allowDirs.length > 0);
  for (const { allowDirs: roots } of bounds.slice(1)) await readImages(sources, cwd, { roots, closed });
  return readImages(sources, cwd, { roots: bounds[0]?.allowDirs ?? [], closed });
}

async function workTree(
  [session]: Parameters<AgentRuntime["workTree"]>,
  config: ClaudeSettings,
): ReturnType<AgentRuntime["workTree"]> {
  const { own, all } = placesOf(config, session);
  const environment = environmentOf(config, session);
  const closed = await closedTo(session.options, environment, config);
  let { cwd } = session.options;
  for (const { allowDirs } of all) cwd = await checkFolder("cwd", cwd, allowDirs, closed);
  return workTreeOf({
    cwd,
    environment,
    wrapper: own.spawnWrapper,
    allowed: all.map(({ allowDirs }) => allowDirs),
  });
}

async function check(
  request: StartRequest,
  environment: Record<string, string>,
  config: ClaudeSettings,
): Promise<void> {
  const { environmentId, isNew = false, options, policy } = request;
  checkAdded(options.env);
  checkOutputSchema(options);
  checkSkills(options);
  if (isNew) checkModels(options);
  const closed = await closedTo(options, environment, config);
  await checkAllPlaces(options, placesOf(config, request).all, closed);
  if (isSandboxed(policy)) checkSandboxedOptions(options);
  const own = options.pathToClaudeCodeExecutable;
  if (own !== undefined && !(await isExecutable(own))) {
    fileAccess.check(own, "pathToClaudeCodeExecutable");
    throw invalidArgument(
      "pathToClaudeCodeExecutable",
      `${own} is not an executable file. Name the Claude Code binary.`,
    );
  }
  if (own === undefined) await config.claude.locate(recordOf(config, environmentId));
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
