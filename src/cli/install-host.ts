import { readPackage } from "../config/version.ts";
import type { Aim } from "../install/change.ts";
import type { Invocation } from "../install/invocation.ts";
import { configElsewhere, longestCallMs } from "../install/server-args.ts";
import { sshArgs, type SshHost } from "../install/ssh/host.ts";
import { findSsh, HostProblem } from "../install/ssh/run-ssh.ts";
import { findThere } from "../install/ssh/search.ts";
import { tryServer } from "../install/ssh/trial.ts";
import { stripControlChars } from "../security/control-chars.ts";

/** Finds and tries the server of `install --host`, with its progress on stderr. */

export interface Prepared {
  readonly command: Invocation;
  /** Longest call of listed tools, ms. */
  readonly longestMs: number;
  readonly notes: readonly string[];
  /** Machine that was tried, for the report. */
  readonly there?: SshHost & { readonly version: string; readonly platform: string };
}

/** Throws ConfigError for flags that no server takes, and HostProblem. */
export async function prepareHost(aim: Aim, host: SshHost, serverArgs: readonly string[]): Promise<Prepared> {
  const { name, target } = host;
  const longestMs = longestCallMs(configElsewhere(serverArgs));
  const tell = (text: string) => void process.stderr.write(`${name}: ${stripControlChars(text)}\n`);
  try {
    const ssh = await findSsh(process.env);
    tell(`looking for claude-agents-mcp on ${target}.`);
    const { node, platform, words } = await findThere(ssh, target);
    tell(
      `found ${words.at(-1) ?? ""} (${[platform, node && `Node ${node}`].filter(Boolean).join(", ")}). Starting it.`,
    );
    const args = sshArgs(target, [...words, ...serverArgs]);
    const began = performance.now();
    const version = await tryServer(ssh, args, target);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const { arch, platform: here } = process;
    tell(`it answered after ${seconds} s. Version there ${version}, here ${readPackage().version} (${here} ${arch}).`);
    const isShared = aim.scope === "project";
    const notes = isShared ? ["the entry names a host and paths of that machine, which others may not have."] : [];
    // A name in a shared file, because the path of `ssh` differs among machines.
    return {
      command: { command: isShared ? "ssh" : ssh, args },
      longestMs,
      notes,
      there: { ...host, version, platform },
    };
  } catch (error) {
    if (error instanceof HostProblem) throw new HostProblem(`--host ${name}: ${error.message}`);
    throw error;
  }
}
