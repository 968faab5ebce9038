import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { invalidArgument } from "../domain/error.ts";
import type { SessionOptions } from "../domain/options.ts";
import type { Principal } from "../domain/principal.ts";
import type { AgentProcess, AgentRuntime, AgentSignal, AgentStart } from "../engine/ports.ts";
import { bundledClaude, isExecutableFile, missingClaude } from "./binary.ts";
import { checkFolder, checkOrigin, checkPlaces } from "./check/folders.ts";
import { readImages } from "./check/images.ts";
import { childEnvironment, configFolder } from "./environment.ts";
import { workTreeOf } from "./git.ts";
import { checkShell } from "./check/git-bash.ts";
import { identify } from "./identity.ts";
import { foldersOf, prepare, recipeFor } from "./prepare.ts";
import { judgeAsk } from "./risk/judge.ts";
import { confinementOf, type ClaudeSettings } from "./settings.ts";
import { ClaudeProcess } from "./process/claude-process.ts";
import { Spares } from "./spares/spares.ts";
import { endLeftover } from "./supervise/leftover.ts";
import { Spawner } from "./supervise/spawn.ts";
import { findSession, openIn } from "./folder/find.ts";

/** Runs Claude Code through the Agent SDK, which is loaded with the first session and not before. */
export function claudeRuntime(config: ClaudeSettings): AgentRuntime {
  const spawner = new Spawner({ forceReaper: config.forceReaper });
  const spares = new Spares({ size: config.spares, idleMs: config.spareIdleMs, spawner, log: config.log });
  const running = new Set<ClaudeProcess>();
  /** Starts of the one do not take the core of the other: a spare is started once the turn before it has ended. */
  const refill = async (request: AgentStart): Promise<void> => {
    const recipe = spares.isOn ? await recipeFor(request, config) : undefined;
    if (recipe) await spares.refill(recipe, request.hasRoom);
  };
  return {
    spares,
    check: async (principal, options) => check(principal, options, config),
    judge: async (principal, options, ask) =>
      judgeAsk(ask, foldersOf(options, plainEnvironment(principal, options, config))),
    attach: async (principal, sources, { cwd }) => readImages(sources, cwd, confinementOf(config, principal).allowDirs),
    async find(principal, sessionId, options) {
      const found = await findSession(sessionId, configFolder(plainEnvironment(principal, options, config)));
      const { allowDirs } = confinementOf(config, principal);
      if (found) await checkOrigin("sessionId", found.cwd, allowDirs);
      return found;
    },
    openIn: async (principal, sessionId, options) =>
      openIn(sessionId, configFolder(plainEnvironment(principal, options, config))),
    async workTree(principal, options) {
      const { allowDirs, spawnWrapper } = confinementOf(config, principal);
      const cwd = await checkFolder("cwd", options.cwd, allowDirs);
      return workTreeOf(cwd, plainEnvironment(principal, options, config), spawnWrapper);
    },
    async reserve(principal, options) {
      const recipe = spares.parked > 0 ? await recipeFor({ principal, options }, config) : undefined;
      return (recipe && spares.promise(recipe.key)) ?? randomUUID();
    },
    start(request: AgentStart): AgentProcess {
      const launch = prepare(request, config, { spares, spawner });
      const { mark, onPartial, transcriptId } = request;
      const onSignal = (signal: AgentSignal) => {
        request.onSignal(signal);
        // Whatever is wrong with it, the next start tells.
        if (signal.type === "idle") refill(request).catch(() => undefined);
      };
      const agent = new ClaudeProcess({ launch, mark, transcriptId, onSignal, onPartial, mask: config.mask });
      running.add(agent);
      // A session that was given up before it began has left its spare to nobody.
      const forget = async () => spares.drop(mark).finally(() => running.delete(agent));
      void agent.ended.then(forget, forget);
      return agent;
    },
    endLeftover,
    identify: async (principal, options) => Promise.resolve(identify(plainEnvironment(principal, options, config))),
    drain: async () => {
      await Promise.all([spares.close(), ...[...running].map(async (agent) => agent.ended)]);
    },
  };
}

/** What a process with these options would see of the configuration. */
function plainEnvironment(principal: Principal, { env = {} }: Pick<SessionOptions, "env">, config: ClaudeSettings) {
  const { configDir } = confinementOf(config, principal);
  return childEnvironment(config.environment, { depth: 0, mark: "", configDir, added: env });
}

async function check(principal: Principal, options: SessionOptions, config: ClaudeSettings): Promise<SessionOptions> {
  const checked = await checkPlaces(options, confinementOf(config, principal).allowDirs);
  const own = options.pathToClaudeCodeExecutable;
  if (own !== undefined && !isExecutableFile(own)) {
    throw invalidArgument("pathToClaudeCodeExecutable", `${own} is no executable file.`);
  }
  if (own === undefined && config.claudePath === undefined && bundledClaude() === undefined) {
    throw invalidArgument("pathToClaudeCodeExecutable", missingClaude());
  }
  const environment = plainEnvironment(principal, options, config);
  checkShell({ platform: process.platform, environment, exists: existsSync });
  return checked;
}
