import { defineConfig } from "vitest/config";

import { amount } from "./test/kit/runner/amount.ts";
import { LongestFirst } from "./test/kit/runner/longest-first.ts";

export default defineConfig({
  test: {
    reporters: ["default", "./test/kit/runner/closing-line.ts"],
    pool: "forks",
    globalSetup: ["./test/kit/runner/no-daemon-left.ts"],
    // For two cores: some tests wait for real time, and others work meanwhile.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Far above every expected wait, so that a slow machine is no failure.
    expect: { poll: { timeout: 15_000 } },
    hookTimeout: 60_000,
    // Modules serve all files of a worker: no test changes a module, and each file has a world of its own.
    isolate: false,
    projects: [
      {
        extends: true,
        test: { name: "unit", include: ["test/unit/**/*.test.ts"], testTimeout: amount(20_000, 400_000) },
      },
      {
        extends: true,
        test: {
          name: "server",
          include: ["test/{server,acceptance}/**/*.test.ts"],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          include: ["test/{browser,page}/**/*.test.ts"],
          globalSetup: ["scripts/start-chromium.mjs"],
          testTimeout: 120_000,
        },
      },
      {
        extends: true,
        // Full tables and long waits, which `npm test` leaves to `npm run test:all`; acceptance without a daemon, with Claude Code.
        test: {
          name: "slow",
          include: ["test/{acceptance,attacks,claude,conformance,faults,load,matrices}/**/*.test.ts"],
          env: { ACCEPTANCE: "real" },
          globalSetup: ["scripts/install-attack-tools.mjs"],
          testTimeout: 120_000,
        },
      },
    ],
  },
});
