import { NoClaudeError } from "../claude/locate.ts";
import { sdkFile } from "../claude/sdk.ts";
import { InstallError, NPM_MISSING } from "../packages/install-faults.ts";
import { findNpm } from "../packages/npm.ts";
import { writeFault } from "../packages/package-cache.ts";
import { SDK_PACKAGE, type Pinned } from "../packages/pinned.ts";
import { missingDrivers } from "../store/drivers.ts";
import { counted, megabytes, FIX_COMMAND, type Finding } from "./finding.ts";
import type { Machine } from "./machine.ts";

/** Checks the packages that npm installs for the first session: installed or installable. Does not contact a registry. */
export async function checkPackages(machine: Machine): Promise<Finding[]> {
  const { environment, packages } = machine;
  const missing = await missingPackages(machine);
  const [first] = missing;
  if (!first) {
    return [{ id: "packages", level: "ok", text: `The Agent SDK is installed: ${sdkFile(packages) ?? ""}.` }];
  }
  const fault = (await findNpm(environment)) ? await writeFault(packages.folder) : NPM_MISSING;
  if (fault) {
    const { fix, message } = new InstallError(first, packages.folder, fault);
    return [{ id: "packages", level: "error", text: message, fix }];
  }
  const size = megabytes(missing.reduce((sum, { bytes }) => sum + bytes, 0));
  const names = missing.map(({ name, version }) => `${name} ${version}`).join(", ");
  const text = `The first session installs ${names} with npm: ${size} in ${packages.folder}.`;
  const mend = async () => {
    for (const pinned of missing) await packages.install(pinned);
    return `${counted(missing.length, "package")} installed in ${packages.folder}.`;
  };
  return [{ id: "packages", level: "ok", text, fix: FIX_COMMAND, mend }];
}

async function missingPackages({ claude, packages, storeKind }: Machine): Promise<Pinned[]> {
  const { toInstall } = await claude.locate().catch((error: unknown) => {
    // `checkClaude` reports that there is no Claude Code.
    if (error instanceof NoClaudeError) return { toInstall: undefined };
    throw error;
  });
  return [
    ...missingDrivers(storeKind),
    ...(sdkFile(packages) === undefined ? [SDK_PACKAGE] : []),
    ...(toInstall ? [toInstall] : []),
  ];
}
