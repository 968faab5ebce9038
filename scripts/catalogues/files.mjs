// Texts of the catalogues' files by path, from package.json and the tables of src.
import { format } from "prettier";

/** Paths of the catalogues' files. Catalogues look for the files at the root there. */
export const PLACES = {
  registry: "server.json",
  marketplace: ".claude-plugin/marketplace.json",
  plugin: "catalogues/plugin",
  bundle: "catalogues/bundle/manifest.json",
  icon: "catalogues/plugin/.claude-plugin/icon.png",
  container: "Containerfile",
};

const SDK = "@anthropic-ai/claude-agent-sdk";
const POSTGRES = "pg";

/** Settings (keys of src/config) that a catalogue asks of its users. Other settings have a default, or are set later. */
const ASKED = {
  registry: "toolsets approvals callerApproves allowDirs trustDirs sandbox claudePath store",
  bundle: "claudePath toolsets approvals callerApproves",
};

/** Node versions with `node:sqlite`, because a bundle has no package with binaries. */
const BUNDLE_NODE = ">=22.13.0";

const IMAGE = "node:22-slim";

/** Resolves to a Map from path to text. `source` has the exports of src, `manifest` is package.json. */
export async function catalogueFiles(manifest, source) {
  const settings = (keys) => keys.split(" ").map((key) => settingOf(source.SETTINGS, key));
  const texts = {
    [PLACES.registry]: json(serverJson(manifest, settings(ASKED.registry))),
    [PLACES.marketplace]: json(marketplace(manifest, source)),
    [`${PLACES.plugin}/.claude-plugin/plugin.json`]: json(plugin(manifest, source)),
    [`${PLACES.plugin}/README.md`]: pluginReadme(manifest, source),
    [`${PLACES.plugin}/skills/delegate/SKILL.md`]: source.SKILL_TEXT,
    [PLACES.bundle]: json(bundle(manifest, source, settings(ASKED.bundle))),
    [PLACES.container]: containerfile(manifest),
  };
  const formatted = Object.entries(texts).map(async ([file, text]) => {
    const parser = file.endsWith(".json") ? "json" : "markdown";
    return [file, file === PLACES.container ? text : await format(text, { parser, printWidth: 120 })];
  });
  return new Map(await Promise.all(formatted));
}

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

function settingOf(all, key) {
  const found = all.find((each) => each.key === key);
  if (!found) throw new Error(`src/config has no setting "${key}": scripts/catalogues/files.mjs names it`);
  return found;
}

/** Returns the public repository. npm and the registry compare its URL with the repository of the workflow. */
function repositoryOf({ repository }) {
  const url = (typeof repository === "string" ? repository : repository?.url)?.replace(/^git\+|\.git$/g, "");
  return url === undefined ? {} : { repository: { url, source: "github" } };
}

/** Format of the MCP Registry: https://modelcontextprotocol.io/registry/quickstart */
function serverJson(manifest, settings) {
  const { description, mcpName, name, version } = manifest;
  return {
    $schema: "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    name: mcpName,
    description,
    version,
    ...repositoryOf(manifest),
    packages: [
      {
        registryType: "npm",
        identifier: name,
        version,
        transport: { type: "stdio" },
        packageArguments: settings.map(argument),
        environmentVariables: [
          {
            name: "ANTHROPIC_API_KEY",
            description: "Key that pays for the sessions, for users who have not logged in to Claude Code.",
            isSecret: true,
          },
        ],
      },
    ],
  };
}

const FORMATS = { number: "number", directories: "filepath", path: "filepath" };

/** Leaves out a default in words, which depends on other values. */
function argument({ fallback, flag, meaning, placeholder, reading }) {
  const choices = placeholder.includes("|") ? placeholder.split("|") : undefined;
  const isValue = choices?.includes(fallback) === true || (reading === "number" && /^\d+$/.test(fallback));
  return {
    type: "named",
    name: `--${flag}`,
    description: meaning,
    format: FORMATS[reading] ?? "string",
    ...(isValue && { default: fallback }),
    ...(choices && { choices }),
    ...(reading === "directories" && { isRepeated: true }),
  };
}

/** Plugin for Claude Code. Starts exactly this version. */
function plugin({ author, description, keywords, license, name, version }, { CLIENTS, PLUGIN, PUBLISHED }) {
  const { entry } = CLIENTS.find(({ id }) => id === "claude-code");
  const args = PUBLISHED.args.map((word) => (word === name ? `${name}@${version}` : word));
  return {
    name: PLUGIN,
    version,
    description,
    author: { name: author },
    license,
    keywords,
    mcpServers: { [name]: entry({ ...PUBLISHED, args }) },
  };
}

function marketplace({ author, description, name }, { PLUGIN }) {
  return {
    name,
    description,
    owner: { name: author },
    plugins: [{ name: PLUGIN, description, source: `./${PLACES.plugin}` }],
  };
}

function pluginReadme({ description, name }, source) {
  const tools = toolsOf(source);
  return `# ${source.PLUGIN}

${description}. This plugin adds the server \`${name}\` to Claude Code, which starts it with \`npx\` and needs Node 20.19 or newer.

A session of yours can then start other sessions in the background, wait for them, answer their permission requests, and continue them later.
The skill \`delegate\` teaches how: to brief, to wait, to answer requests, to read receipts, to fork.
They run with your own login, and go on when the session that started them ends.

| tool | purpose |
| ---- | ------- |
${tools.map((tool) => `| \`${tool.name}\` | ${tool.description} |`).join("\n")}
`;
}

/** Returns the tools of the default toolset, each with the first sentence of its description. */
function toolsOf({ Config, toolsOf: listed }) {
  const { toolsets } = Config.parse({});
  return listed(toolsets, { query: Config.parse({}).query, gate: () => ({}) }).map((tool) => ({
    name: tool.name,
    description: firstSentence(tool.describe({})),
  }));
}

function firstSentence(text) {
  return /^[^]*?\.(?=\s|$)/.exec(text)?.[0] ?? text;
}

/** Manifest of a bundle for Claude Desktop: https://github.com/modelcontextprotocol/mcpb */
function bundle(manifest, source, settings) {
  const { author, description, keywords, license, name, version } = manifest;
  const keyOf = ({ flag }) => flag.replaceAll("-", "_");
  return {
    manifest_version: "0.3",
    name,
    display_name: name,
    version,
    description,
    author: { name: author },
    license,
    keywords,
    icon: "icon.png",
    server: {
      type: "node",
      entry_point: manifest.bin[name],
      mcp_config: {
        command: "node",
        args: [`\${__dirname}/${manifest.bin[name]}`],
        // Clients leave the placeholder of an option without a value, so each option has the default "", which counts as not
        // set.
        env: Object.fromEntries(settings.map((each) => [each.variable, `\${user_config.${keyOf(each)}}`])),
      },
    },
    tools: toolsOf(source),
    tools_generated: true,
    compatibility: { platforms: ["darwin", "linux", "win32"], runtimes: { node: BUNDLE_NODE } },
    user_config: Object.fromEntries(settings.map((each) => [keyOf(each), option(each)])),
  };
}

function option({ flag, meaning, reading }) {
  const words = flag.replaceAll("-", " ");
  const type = reading === "path" ? "file" : "string";
  const title = words.charAt(0).toUpperCase() + words.slice(1);
  return { type, title, description: meaning, required: false, default: "" };
}

function containerfile(manifest) {
  const { description, license, mcpName, name, version } = manifest;
  // Installs beside the package what it would otherwise install when first used.
  const known = { ...manifest.optionalDependencies, ...manifest.devDependencies, ...manifest.peerDependencies };
  const missing = [SDK, POSTGRES].filter((each) => manifest.dependencies?.[each] === undefined && known[each]);
  const beside = missing.map((each) => ` ${each}@${known[each]}`).join("");
  return `# Written by scripts/catalogues.mjs. Usage: docs/http.md#containers
ARG NODE=${IMAGE}

FROM \${NODE} AS build
WORKDIR /src
COPY . .
RUN npm ci --no-audit --no-fund && npm pack

FROM \${NODE}
LABEL org.opencontainers.image.title="${name}" \\
  org.opencontainers.image.description="${description}" \\
  org.opencontainers.image.version="${version}" \\
  org.opencontainers.image.licenses="${license}" \\
  io.modelcontextprotocol.server.name="${mcpName}"
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git tini util-linux && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/${name}-${version}.tgz /tmp/
RUN npm install -g /tmp/${name}-${version}.tgz${beside} && rm /tmp/${name}-${version}.tgz && install -d -o node -g node /work
USER node
RUN mkdir -p ~/.claude ~/.local/state/${name}
WORKDIR /work
VOLUME ["/work", "/home/node/.claude", "/home/node/.local/state/${name}"]
STOPSIGNAL SIGTERM
# The container ends with the client: a daemon would be killed with it.
ENV CLAUDE_CODE_MCP_DAEMON=off
# tini reaps what the shells of sessions leave behind.
ENTRYPOINT ["tini", "--", "${name}"]
`;
}
