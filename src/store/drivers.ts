import type { StoreLocation } from "../config/store.ts";
import { DRIVER_PACKAGE, type Pinned, POSTGRES_PACKAGE } from "../packages/pinned.ts";
import { hasPackage, installPackage } from "./installed-package.ts";
import { hasDriver } from "./sqlite/connect/driver.ts";

/** Returns the packages without which a store of this kind cannot be opened. Every store keeps some sessions in memory. */
export function missingDrivers(kind: StoreLocation["kind"]): Pinned[] {
  const isMissing = kind === "postgres" && !hasPackage(POSTGRES_PACKAGE);
  return [...(hasDriver() ? [] : [DRIVER_PACKAGE]), ...(isMissing ? [POSTGRES_PACKAGE] : [])];
}

/** Installs the packages that a store of this kind needs. Throws `InstallError`. */
export async function installDrivers(kind: StoreLocation["kind"]): Promise<void> {
  for (const pinned of missingDrivers(kind)) await installPackage(pinned);
}
