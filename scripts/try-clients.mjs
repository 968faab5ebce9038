// Tests `install` of the packed package with real programs: lets `install` write their configuration, and reads the tools that
// each program offers its model from the request to a server on loopback, which answers with an error. Installs the programs
// into a temporary folder, in the versions of docs/clients.md, from the registry of your npm. No account is needed.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, resolve as absolute } from "node:path";
import { text } from "node:stream/consumers";
import { readArguments } from "./arguments.mjs";
import { packInto } from "./packed.mjs";

const TOOLS = ["claude_code", "claude_code_check", "claude_code_reply", "claude_code_session"];
/** Time limit from the start of a program to the request of its model, ms. */
const LIMIT_MS = 120_000;
const PROMPT = "Say hello.";

/**
 * Programs to try. `title` is as in docs/clients.md, `files` are written to the home folder before `install`. `start` returns
 * the words of the command, which send the program's model to `url`.
 */
const PROGRAMS = {
  "claude-code": {
    title: "Claude Code",
    package: "@anthropic-ai/claude-code",
    start: (url) => ({
      words: ["claude", "-p", PROMPT],
      env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "none", ENABLE_TOOL_SEARCH: "false" },
    }),
  },
  codex: {
    title: "Codex CLI",
    package: "@openai/codex",
    start: (url) => ({
      words: [
        "codex",
        "exec",
        "--skip-git-repo-check",
        "-m",
        "gpt-5",
        "-c",
        "model_provider=noted",
        "-c",
        ofCodex(url),
        PROMPT,
      ],
    }),
  },
  gemini: {
    title: "Gemini CLI",
    package: "@google/gemini-cli",
    files: { ".gemini/settings.json": '{ "security": { "auth": { "selectedType": "gemini-api-key" } } }\n' },
    // `yolo` makes `gemini -p` show its model tools that need approval; trusting the folder allows servers.
    start: (url) => ({
      words: ["gemini", "-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", PROMPT],
      env: { GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: "none", GEMINI_CLI_TRUST_WORKSPACE: "true" },
    }),
  },
  opencode: {
    title: "opencode",
    package: "opencode-ai",
    start: (url) => ({
      words: ["opencode", "run", "--model", "noted/one", PROMPT],
      env: {
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_CONFIG_CONTENT: JSON.stringify({
          provider: {
            noted: {
              npm: "@ai-sdk/openai-compatible",
              options: { baseURL: `${url}/v1`, apiKey: "none" },
              models: { one: { tool_call: true } },
            },
          },
        }),
      },
    }),
  },
  "copilot-cli": {
    title: "Copilot CLI",
    package: "@github/copilot",
    start: (url) => ({
      words: ["copilot", "-p", PROMPT, "--allow-all-tools"],
      env: {
        COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
        COPILOT_PROVIDER_TYPE: "openai",
        COPILOT_PROVIDER_API_KEY: "none",
        COPILOT_MODEL: "gpt-5",
        COPILOT_OFFLINE: "true",
      },
    }),
  },
};

function ofCodex(url) {
  return `model_providers.noted={name="noted", base_url="${url}/v1", wire_api="responses", request_max_retries=0}`;
}

const USAGE = `Usage: node scripts/try-clients.mjs [--package FILE] [NAME ...]

--package FILE  package file (default: packed from this clone)
NAME            ${Object.keys(PROGRAMS).join(", ")} (default: all)`;

const { positionals, refuse, values } = readArguments(USAGE, {
  options: { package: { type: "string" } },
  allowPositionals: true,
});
const names = positionals.length > 0 ? positionals : Object.keys(PROGRAMS);
const unknown = names.find((name) => !Object.hasOwn(PROGRAMS, name));
if (unknown !== undefined) refuse(`There is no program "${unknown}".`);

const folder = mkdtempSync(join(tmpdir(), "ccm-clients-"));
const ownFolders = [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"];
try {
  const prefix = join(folder, "own");
  npmInstall(prefix, values.package === undefined ? packInto(folder) : absolute(values.package));
  for (const name of names) await tryOne(name, join(prefix, "bin"));
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function npmInstall(prefix, spec) {
  const words = ["install", "--global", "--prefix", prefix, "--no-audit", "--no-fund", "--loglevel", "error", spec];
  execFileSync("npm", words, { stdio: ["ignore", "ignore", "inherit"] });
}

/** Returns the "tested version" in the table of docs/clients.md. */
function versionOf(title) {
  const document = readFileSync(join(import.meta.dirname, "../docs/clients.md"), "utf8");
  const row = document.split("\n").find((line) => line.startsWith(`| [${title}]`) && /\d +\|$/.test(line));
  const version = /(\d+\.\d+\.\d+) +\|$/.exec(row ?? "")?.[1];
  if (version === undefined) throw new Error(`docs/clients.md names no tested version of ${title}.`);
  return version;
}

/** Tries a program with its own home folder, project and prefix. */
async function tryOne(name, bin) {
  const program = PROGRAMS[name];
  const version = versionOf(program.title);
  const [home, cwd, prefix] = ["home", "project", "prefix"].map((part) => join(folder, name, part));
  for (const each of [home, cwd]) mkdirSync(each, { recursive: true });
  for (const [file, content] of Object.entries(program.files ?? {})) {
    mkdirSync(dirname(join(home, file)), { recursive: true });
    writeFileSync(join(home, file), content);
  }
  npmInstall(prefix, `${program.package}@${version}`);
  const env = { HOME: home, PATH: [bin, join(prefix, "bin"), ...ownFolders].join(":"), TERM: "dumb" };
  const ours = (...words) => execFileSync(join(bin, "claude-agents-mcp"), words, { cwd, env, encoding: "utf8" });
  const state = () => JSON.parse(ours("install", "--json")).clients.find(({ client }) => client === name).user.state;
  try {
    const without = await offered(program, { cwd, env });
    ours("install", name, "--yes");
    const began = Date.now();
    const withOurs = await offered(program, { cwd, env });
    const seconds = ((Date.now() - began) / 1000).toFixed(1);
    ours("uninstall", name, "--yes");
    report(`${program.title} ${version}`, { before: without, seconds, state: state(), tools: withOurs });
  } finally {
    // Exits with 1 if no daemon runs.
    spawnSync(join(bin, "claude-agents-mcp"), ["daemon", "stop", "--all", "--yes"], { cwd, env });
  }
}

function report(title, { before, seconds, state, tools }) {
  const missing = TOOLS.filter((tool) => !tools.includes(tool));
  const problems = [
    ...(before.length > 0 ? [`offered ${before.join(", ")} before install`] : []),
    ...(missing.length > 0 ? [`offers no ${missing.join(", ")}`] : []),
    ...(state === "absent" ? [] : [`uninstall left an entry (${state})`]),
  ];
  if (problems.length > 0) process.exitCode = 1;
  console.log(`${title}: ${problems.length > 0 ? problems.join("; ") : `${tools.join(", ")} (after ${seconds} s)`}`);
}

/** Starts the program and ends the program at its model's first request with tools. Resolves to our tools in the request. */
async function offered({ start }, { cwd, env }) {
  const requests = new EventEmitter();
  const asked = once(requests, "tools", { signal: AbortSignal.timeout(LIMIT_MS) }).catch(() => [[]]);
  const answer = async (request, response) => {
    // Ignores earlier requests for a title or a route, which have no tools.
    const all = toolNames(await text(request));
    if (all.length > 0) requests.emit("tools", all);
    response.writeHead(400, { "content-type": "application/json" }).end(`{"error":{"message":"noted"}}`);
  };
  const server = createServer((request, response) => void answer(request, response));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { env: more = {}, words } = start(`http://127.0.0.1:${server.address().port}`);
  const [command, ...args] = words;
  const child = spawn(command, args, {
    cwd,
    env: { ...env, ...more },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  const ended = once(child, "close");
  try {
    const [all] = await Promise.race([asked, ended.then(() => [[]])]);
    if (all.length === 0) console.error((await endedBy(child, said)).join(""));
    return TOOLS.filter((tool) => all.some((name) => name === tool || new RegExp(`[_-]${tool}$`).test(name)));
  } finally {
    await endedBy(child, said);
    server.close();
    server.closeAllConnections();
  }
}

/** Ends the process group of `child`. Resolves to its output after all processes have ended. */
function endedBy(child, said) {
  try {
    process.kill(-child.pid, "SIGTERM");
    setTimeout(() => child.exitCode ?? child.signalCode ?? process.kill(-child.pid, "SIGKILL"), 5_000).unref();
  } catch {
    // The group has ended already.
  }
  return said;
}

/** Returns all names below the lists of tools, in any API's nesting. */
function toolNames(body) {
  try {
    return namesIn(JSON.parse(body).tools ?? []);
  } catch {
    return [];
  }
}

function namesIn(value) {
  if (typeof value !== "object" || value === null) return [];
  const name = typeof value.name === "string" ? [value.name] : [];
  return [...name, ...Object.values(value).flatMap(namesIn)];
}
