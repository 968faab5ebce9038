import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig, unknownVariables } from "../../src/config/load.ts";
import { compose, nodes, nodeSettings, type Service, textOf } from "../kit/machines/cluster-example.ts";

/** Compares the files of examples/cluster with the server's settings, and with each other. */

const { balancer, database, marker } = compose.services;
const settingsFile = `/etc/claude-agents-mcp.json`;
const readFile = (file: string): string => {
  expect(file).toBe(settingsFile);
  return nodeSettings();
};
const configOf = ({ command, environment }: Service) =>
  loadConfig({ argv: command.slice(1), env: environment, readFile });
const named = nodes.map(([name, node]) => ({ name, node, config: configOf(node) }));
const haproxy = textOf("haproxy.cfg");

/** Path in a container, by the volume that is mounted there. */
const mounts = ({ volumes }: Service) => Object.fromEntries(volumes.map((text) => text.split(":") as [string, string]));
const seconds = (text = "") => Number(/^(\d+)s$/.exec(text)?.[1]);

describe("examples/cluster", () => {
  it("examples/cluster has two nodes that the server's settings accept, which differ in name and disk only", () => {
    expect(named.map(({ config, name }) => [name, config.node])).toEqual([
      ["one", "one"],
      ["two", "two"],
    ]);
    const [one, two] = named.map(({ node: { command, volumes, ...same } }) => {
      const words = command.map((word) => (word === "one" || word === "two" ? "NAME" : word));
      return { ...same, words, volumes: volumes.map((text) => text.replace(/^claude-(one|two):/, "")) };
    });
    expect(one).toEqual(two);
    const variables = named.flatMap(({ node }) => Object.keys(node.environment));
    expect(unknownVariables(Object.fromEntries(variables.map((name) => [name, ""])))).toEqual([]);
    expect(named[0]!.config.principals).toHaveProperty("alice.scopes", ["read", "run", "approve"]);
  });

  it.each(named)("node $name finds its database, secrets and folders", ({ config, node }) => {
    const { store } = config;
    expect(store?.kind).toBe("postgres");
    const { hostname, password, pathname, username } = new URL(store?.kind === "postgres" ? store.url : "");
    expect({ password, hostname }).toEqual({ password: "", hostname: "database" });
    const { POSTGRES_DB, POSTGRES_PASSWORD_FILE, POSTGRES_USER } = database!.environment;
    expect([pathname.slice(1), username]).toEqual([POSTGRES_DB, POSTGRES_USER]);
    expect([config.storePasswordFile, config.tokenFile]).toEqual([
      POSTGRES_PASSWORD_FILE,
      "/run/secrets/operator-token",
    ]);
    for (const file of [config.storePasswordFile, config.tokenFile]) {
      const [secret] = node.secrets.filter((name) => `/run/secrets/${name}` === file);
      expect(basename(compose.secrets[secret!]!.file)).toBe(secret);
    }
    expect(node.configs).toEqual([{ source: "node", target: settingsFile }]);
    const work = mounts(node)["work"];
    expect([config.allowDirs, config.sharedFolders, marker!.command]).toEqual([
      [work],
      [work],
      ["nodes", "share", work],
    ]);
    expect(mounts(marker!)["work"]).toBe(work);
  });

  it("the balancer passes the published port on to the port and the health routes of every node", () => {
    const ports = named.map(({ config, name, node }) => {
      const [, port = ""] = /:(\d+)$/.exec(config.http ?? "") ?? [];
      expect(node.healthcheck?.test.at(-1)).toContain(`http://127.0.0.1:${port}/healthz`);
      return `${name}:${port}`;
    });
    expect([...haproxy.matchAll(/^ {2}server (\S+) (\S+)$/gm)].map(([, name, at]) => [name, at])).toEqual(
      ports.map((at) => [at.split(":")[0], at]),
    );
    expect(haproxy).toContain("\n  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host ");
    const [, bound = ""] = /^ {2}bind :(\d+)$/m.exec(haproxy) ?? [];
    const { host, port } = new URL(named[0]!.config.publicUrl ?? "");
    expect(balancer!.ports).toEqual([`${host}:${bound}`]);
    expect(bound).toBe(port);
    expect(balancer!.depends_on).toEqual(named.map(({ name }) => name));
  });

  it("containers and the balancer wait longer than the server", () => {
    for (const { config, node } of named)
      expect(seconds(node.stop_grace_period) * 1_000).toBeGreaterThan(config.drainMs);
    const hours = [...haproxy.matchAll(/^ {2}timeout (?:client|server) (\d+)h$/gm)].map(([, number]) => Number(number));
    expect(hours.map((number) => number * 3_600_000)).toEqual([3_600_000, 3_600_000]);
  });

  it("files and volumes of the example exist, and the image has the folders and the driver of the database", () => {
    const containerfile = readFileSync("Containerfile", "utf8");
    for (const { node } of named) {
      expect(existsSync(join("examples/cluster", node.build!.context, node.build!.dockerfile))).toBe(true);
      for (const path of Object.values(mounts(node)))
        expect(containerfile).toMatch(new RegExp(`^VOLUME .*"${path}"`, "m"));
    }
    expect(containerfile).toMatch(/npm install -g .* pg@\d/);
    const volumes = Object.values(compose.services).flatMap((service) => Object.keys(mounts(service)));
    expect(new Set(volumes)).toEqual(new Set([...Object.keys(compose.volumes), "./haproxy.cfg"]));
    for (const { file } of Object.values(compose.configs))
      expect(existsSync(join("examples/cluster", file))).toBe(true);
    expect(named[0]!.node.depends_on).toEqual({
      database: { condition: "service_healthy" },
      marker: { condition: "service_completed_successfully" },
    });
    expect(database!.healthcheck?.test.slice(2)).toEqual([
      `--username=${database!.environment["POSTGRES_USER"]!}`,
      `--dbname=${database!.environment["POSTGRES_DB"]!}`,
    ]);
  });
});
