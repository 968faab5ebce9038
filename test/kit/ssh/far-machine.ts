import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";

/** Another machine, as SSH shows it: Debian's sshd on loopback, with a home folder and an environment of its own. */
export interface FarMachine {
  /** Home folder there. */
  readonly home: string;
  /** Folder of nvm there, with Node and this program, outside of the `PATH` of a command over SSH. */
  readonly bin: string;
  /** Folder with `ssh`, which reads the configuration of the test. */
  readonly path: string;
  /** Sets the `PATH` of login shells there. */
  setLoginPath(...folders: readonly string[]): void;
  close(): Promise<void>;
}

const SSHD = "/usr/sbin/sshd";

/**
 * Starts the sshd. `environment` is set for every login there. Hosts of the configuration here: `gpu` works, although its entry
 * asks for a terminal, an agent and a forwarded port; `stranger` has an unknown key, `changed` another key, `locked` asks for a
 * password, `off` does not listen.
 */
export async function startFarMachine(folder: string, environment: Record<string, string>): Promise<FarMachine> {
  const at = (...names: string[]) => join(folder, ...names);
  const [home, path] = [at("far home"), at("near bin")];
  const bin = join(home, ".nvm", "versions", "node", "v22.0.0", "bin");
  for (const each of [bin, path, at("keys")]) mkdirSync(each, { recursive: true });
  symlinkSync(process.execPath, join(bin, "node"));
  symlinkSync(resolve("dist/cli/main.js"), join(bin, "claude-agents-mcp"));
  for (const name of ["host", "other", "user", "refused"]) {
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", at("keys", name)]);
  }
  const [port, closed] = [await freePort(), await freePort()];
  writeFileSync(at("authorized"), readFileSync(at("keys", "user.pub")));
  const known = (host: string, key: string) => `${host} ${readFileSync(at("keys", `${key}.pub`), "utf8")}`;
  writeFileSync(at("known"), known("gpu", "host") + known("changed", "other") + known("locked", "host"));
  writeFileSync(at("ssh_config"), sshConfig(at, { port, closed }));
  writeFileSync(join(path, "ssh"), `#!/bin/sh\nexec /usr/bin/ssh -F '${at("ssh_config")}' "$@"\n`, { mode: 0o755 });
  const variables = {
    ...environment,
    HOME: home,
    PATH: "/usr/local/sbin:/usr/bin:/bin",
    SHELL: userInfo().shell ?? "",
  };
  writeFileSync(at("sshd_config"), sshdConfig(at, port, variables));
  const setLoginPath = (...folders: readonly string[]) => {
    const line = `export PATH='${folders.join(":")}'\n`;
    for (const name of [".bash_profile", ".profile", ".zprofile"])
      writeFileSync(join(home, name), `echo Hello\n${line}`);
  };
  setLoginPath("/usr/bin", "/bin");
  const sshd = await startSshd(at("sshd_config"));
  return {
    home,
    bin,
    path,
    setLoginPath,
    async close() {
      const gone = once(sshd, "exit");
      sshd.kill();
      await gone;
    },
  };
}

type At = (...names: string[]) => string;

function sshConfig(at: At, { closed, port }: { closed: number; port: number }): string {
  const lines = [
    ...["gpu", "stranger", "changed", "locked"].flatMap((host) => [`Host ${host}`, `  HostKeyAlias ${host}`]),
    "Host off",
    `  Port ${String(closed)}`,
    "Host gpu",
    "  RequestTTY force",
    "  RemoteCommand tmux attach",
    "  ForwardAgent yes",
    `  LocalForward ${String(port)} 127.0.0.1:1`,
    "  ExitOnForwardFailure yes",
    "Host locked",
    `  IdentityFile "${at("keys", "refused")}"`,
    "Host gpu stranger changed off",
    `  IdentityFile "${at("keys", "user")}"`,
    "Host gpu stranger changed locked off",
    "  HostName 127.0.0.1",
    `  Port ${String(port)}`,
    `  User ${userInfo().username}`,
    "  IdentitiesOnly yes",
    "  IdentityAgent none",
    `  UserKnownHostsFile "${at("known")}"`,
    "  GlobalKnownHostsFile none",
  ];
  return `${lines.join("\n")}\n`;
}

function sshdConfig(at: At, port: number, variables: Record<string, string>): string {
  const set = Object.entries(variables).map(([name, value]) => `"${name}=${value.replaceAll('"', String.raw`\"`)}"`);
  const lines = [
    "ListenAddress 127.0.0.1",
    `Port ${String(port)}`,
    `HostKey "${at("keys", "host")}"`,
    `AuthorizedKeysFile "${at("authorized")}"`,
    "PidFile none",
    "UsePAM no",
    // The folder of the test is below the temporary folder, which others can write.
    "StrictModes no",
    "AllowAgentForwarding yes",
    `SetEnv ${set.join(" ")}`,
  ];
  return `${lines.join("\n")}\n`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function startSshd(config: string): Promise<ChildProcess> {
  // Debian's unit makes this folder.
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  chmodSync(config, 0o600);
  const sshd = spawn(SSHD, ["-D", "-e", "-f", config], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  await new Promise<void>((ready, reject) => {
    sshd.stderr.on("data", (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes("Server listening")) ready();
    });
    sshd.once("error", reject);
    sshd.once("exit", () => reject(new Error(`sshd has ended: ${said}`)));
  });
  return sshd;
}
