// Starts a PostgreSQL server for all tests of several machines. vitest calls `setup()` before the project "machines", and
// `teardown()` after the project.
import { SKIP } from "./install-postgres.mjs";
import { Cluster } from "./postgres-cluster.mjs";

let cluster;

/** Provides the server to tests: `inject("postgres")`, which is `undefined` if POSTGRES=skip. */
export async function setup({ provide }) {
  if (process.env.POSTGRES === SKIP) return;
  cluster = await Cluster.start();
  const { bin, password, port, user } = cluster;
  provide("postgres", { bin, password, port, user });
}

export async function teardown() {
  await cluster?.remove();
}
