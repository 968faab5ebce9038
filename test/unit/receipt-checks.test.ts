import { describe, expect, it } from "vitest";
import { checkOf, RUNNERS } from "../../src/engine/receipt/checks.ts";
import { readTotals } from "../../src/engine/receipt/totals.ts";
import { readCommandLine } from "../../src/security/shell/command-line.ts";

describe("form of a command line", () => {
  it.each([
    ["npm test", "plain", "npm test"],
    ["npm test 2>&1 > out.txt", "plain", "npm test"],
    ["CI=1 NODE_OPTIONS=--x npm test", "plain", "npm test"],
    ["time npm test", "plain", "npm test"],
    ["timeout 60 npm test", "plain", "npm test"],
    ["env CI=1 npm test", "plain", "npm test"],
    ["cd 'a b' && npm test", "plain", "npm test"],
    ["npm run lint && npm test", "and", "npm run lint, npm test"],
    ["cd x && npm run lint && npm test", "and", "npm run lint, npm test"],
    ["npm test | tail -20", "filtered", "npm test"],
    ["cd x && npm test 2>&1 | tail -n 20 | head", "filtered", "npm test"],
    ["npm test | tee out.txt", "other", "npm test, tee out.txt"],
    ["npm test | tail -f log", "other", "npm test, tail -f log"],
    ["npm test || true", "other", "npm test, true"],
    ["npm test; echo done", "other", "npm test, echo done"],
    ["npm test\necho done", "other", "npm test, echo done"],
    ["npm test &", "other", "npm test"],
    ["! npm test", "other", "npm test"],
    ["if npm test; then echo yes; fi", "other", "npm test, echo yes"],
    ["(cd x && npm test)", "other", "cd x, npm test"],
    ["cd x 2>/dev/null && npm test", "and", "cd x, npm test"],
    ["X=$(npm test)", "other", ""],
    ["echo $(npm test)", "plain", "echo ?"],
    ["npm test '", "other", ""],
  ])("%j is %s", (text, form, commands) => {
    const line = readCommandLine(text, "bash");
    const words = line.commands.map((command) => command.map((word) => word ?? "?").join(" "));
    expect([line.form, words.join(", ")]).toEqual([form, commands]);
  });

  it("a line of PowerShell is plain or cannot be read", () => {
    expect(readCommandLine("npm test", "powershell")).toMatchObject({ form: "plain", commands: [["npm", "test"]] });
    expect(readCommandLine("npm test; exit 0", "powershell")).toMatchObject({ form: "other", commands: [] });
  });
});

describe("kind of check", () => {
  const KINDS = {
    test: `npm test|npm t|npm run test:unit|npm run -s test -- --watch=false|pnpm --filter web test|yarn test|bun test
      npx vitest run|npx --yes jest|pnpm exec vitest|yarn jest|bunx vitest|node --test|node node_modules/vitest/vitest.mjs run
      ./node_modules/.bin/mocha|.venv/bin/pytest|/usr/local/bin/npm test|bin/rspec|vitest|pytest -q|python -m pytest|python3.12 -m unittest|uv run pytest|poetry run python -m pytest
      go test ./...|cargo test|cargo nextest run|mvn -q verify|./gradlew :app:test|make test|just test|tox|vendor/bin/phpunit
      bundle exec rspec|dotnet test|mix test|npx playwright test|npm run e2e|deno test|ctest|bazel test //...|swift test`,
    lint: `npm run lint|npx eslint .|eslint --fix src|ruff check|uv run ruff check .|cargo clippy|go vet ./...|npx prettier --check .
      golangci-lint run|make lint|black --check .|npm run check|python -m flake8|bundle exec rubocop|biome ci`,
    type: `tsc --noEmit|npx tsc -p .|mypy src|python -m mypy .|npm run typecheck|pnpm run type-check|cargo check|npx pyright`,
    build: `npm run build|make|make build|mvn package|./gradlew assemble|cargo build --release|go build ./...|npx vite build
      dotnet build|npx webpack|cmake --build out`,
    none: `npm install|npm run dev|git test|echo npm test|npx prettier --write .|ruff format|python script.py|cargo run|ls test
      npx tsx test.ts|npm exec cowsay test|make clean|vite|node server.js --port 1|npx --help vitest|./npm test|tools/vitest run|../pytest|black .|find . -exec npm test`,
  };
  const rows = Object.entries(KINDS).flatMap(([kind, commands]) =>
    commands.split(/\||\n/).map((command): [string, string] => [command.trim(), kind]),
  );

  it.each(rows)("%j is %s", (command, kind) => {
    expect(checkOf(command.split(" "))?.kind ?? "none").toBe(kind);
  });

  it("names the runner if the command does", () => {
    const of = (command: string) => checkOf(command.split(" "))?.runner;
    expect(["npx vitest run", "node --test", "uv run pytest", "npm test", "go test ./..."].map(of)).toEqual([
      "vitest",
      "node",
      "pytest",
      undefined,
      undefined,
    ]);
  });
});

/** Ends of outputs. All but those of phpunit and rspec were printed by the runners themselves. */
const OUTPUTS: Record<(typeof RUNNERS)[number], readonly (readonly [output: string, totals: object | undefined])[]> = {
  vitest: [
    [
      "\u001b[2m Test Files \u001b[22m \u001b[1m\u001b[31m1 failed\u001b[39m\u001b[22m\u001b[90m (1)\u001b[39m\n\u001b[2m      Tests \u001b[22m \u001b[1m\u001b[31m1 failed\u001b[39m\u001b[22m\u001b[2m | \u001b[22m\u001b[1m\u001b[32m1 passed\u001b[39m\u001b[22m\u001b[2m | \u001b[22m\u001b[36m1 expected fail\u001b[39m\u001b[2m | \u001b[22m\u001b[33m1 skipped\u001b[39m\u001b[2m | \u001b[22m\u001b[90m1 todo\u001b[39m\u001b[90m (5)\u001b[39m\n\u001b[2m   Start at \u001b[22m 13:55:04",
      { passed: 1, failed: 1, skipped: 2 },
    ],
    [
      " Test Files  2 passed (2)\n      Tests  7 passed (7)\n   Start at  13:37:51",
      { passed: 7, failed: 0, skipped: 0 },
    ],
    [" Test Files  2 passed (2)\n      Tests  7 passed (8)\n", undefined],
    ["      Tests  42 passed (42)\n", undefined],
  ],
  jest: [
    [
      "Test Suites: 3 failed, 3 total\nTests:       2 failed, 2 skipped, 1 todo, 2 passed, 7 total\nSnapshots:   0 total\nTime:        0.932 s",
      { passed: 2, failed: 2, skipped: 3 },
    ],
    ["Tests:       42 passed, 42 total", undefined],
  ],
  mocha: [
    ["    - c\n\n\n  1 passing (2ms)\n  1 pending\n  1 failing\n\n  1) m", { passed: 1, failed: 1, skipped: 1 }],
    ["  12 passing (3s)\n", { passed: 12, failed: 0, skipped: 0 }],
    ["12 passing (3s)\n", undefined],
  ],
  node: [
    [
      "1..4\n# tests 4\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 1\n# duration_ms 112.083848",
      { passed: 1, failed: 1, skipped: 2 },
    ],
    [
      "ℹ tests 4\nℹ suites 0\nℹ pass 1\nℹ fail 1\nℹ cancelled 0\nℹ skipped 1\nℹ todo 1\nℹ duration_ms 304.28337\n\n✖ failing tests:",
      { passed: 1, failed: 1, skipped: 2 },
    ],
    ["# pass 100\n# fail 0", undefined],
  ],
  pytest: [
    [
      "============== 1 failed, 1 passed, 1 skipped, 1 xfailed in 1.62s ===============",
      { passed: 1, failed: 1, skipped: 1 },
    ],
    [
      "FAILED test_a.py::test_b - assert 0\n1 failed, 1 passed, 1 skipped, 1 xfailed in 1.87s",
      { passed: 1, failed: 1, skipped: 1 },
    ],
    ["=========== 2 passed, 3 errors in 61.20s (0:01:01) ===========", { passed: 2, failed: 3, skipped: 0 }],
    ["2 apples in 3s", undefined],
  ],
  cargo: [
    [
      "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests x\n\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.46s\n",
      { passed: 2, failed: 2, skipped: 1 },
    ],
  ],
  phpunit: [
    ["OK (12 tests, 34 assertions)", { passed: 12, failed: 0 }],
    ["FAILURES!\nTests: 7, Assertions: 9, Errors: 1, Failures: 2, Skipped: 1.", { passed: 3, failed: 3, skipped: 1 }],
    ["Tests: 1, Assertions: 9, Failures: 2.", undefined],
  ],
  rspec: [
    ["Finished in 0.01 seconds\n5 examples, 1 failure, 1 pending\n", { passed: 3, failed: 1, skipped: 1 }],
    ["0 examples, 0 failures, 1 error occurred outside of examples", { passed: 0, failed: 1, skipped: 0 }],
  ],
};

describe("totals of runners", () => {
  const rows = RUNNERS.flatMap((runner) => OUTPUTS[runner].map(([output, totals]) => ({ runner, output, totals })));

  it.each(rows)("$runner: $totals", ({ output, runner, totals }) => {
    const found = { named: readTotals(output, runner, false), unnamed: readTotals(output, undefined, false) };
    expect(found).toEqual({ named: totals, unnamed: totals });
  });

  it("gives no totals for two summaries, or for one of several that may be cut off", () => {
    const sampleOf = (runner: keyof typeof OUTPUTS) => OUTPUTS[runner][0]?.[0] ?? "";
    const [vitest, jest, cargo] = [sampleOf("vitest"), sampleOf("jest"), sampleOf("cargo")];
    expect(readTotals(`${vitest}\n${vitest}`, "vitest", false)).toBeUndefined();
    expect(readTotals(`${vitest}\n${jest}`, undefined, false)).toBeUndefined();
    expect(readTotals(cargo, "cargo", true)).toBeUndefined();
    expect(readTotals(vitest, "vitest", true)).toMatchObject({ passed: 1 });
  });
});
