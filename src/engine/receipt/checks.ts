import type { CommandRun } from "../../domain/receipt.ts";

/** Recognizes checks by their program: runners of tests, linters, type checkers, builds. */

type Kind = NonNullable<CommandRun["check"]>;

/** Runners of tests whose totals are read. `go test` is not among them, because it prints none. */
export const RUNNERS = ["cargo", "jest", "mocha", "node", "phpunit", "pytest", "rspec", "vitest"] as const;
export type Runner = (typeof RUNNERS)[number];

export interface Check {
  readonly kind: Kind;
  /** Runner, if the command names one that is in `RUNNERS`. */
  readonly runner?: Runner;
}

/** Words of a command; `undefined` if known only at run time. */
type Words = readonly (string | undefined)[];

/** Maximum number of programs that run one another (`uv run python -m pytest`). */
const MAX_DEPTH = 5;

/** Returns `undefined` for a command that is not known as a check. */
export function checkOf(words: Words, depth = 0): Check | undefined {
  const [written = "", ...args] = words;
  const program = programOf(written);
  if (depth > MAX_DEPTH || asksForHelp(args)) return undefined;
  const inner = INNER.get(program)?.(args);
  if (inner !== undefined) return checkOf(inner, depth + 1);
  const runner = RUNNERS.find((each) => each === program);
  const kind = byProgram(program, args);
  return kind && { kind, ...(kind === "test" && runner && { runner }) };
}

/** Folders of programs. A program of a known name in any other folder may be anything. */
const PROGRAM_FOLDER = /(?:^|[\\/])(?:\.bin|bin|Scripts)$/;
/** Programs in the folder of a project. */
const WRAPPER = /^\.?[\\/]?(?:gradlew|mvnw)(?:\.bat|\.cmd)?$/;

/** Returns the name of a program, also of `node_modules/.bin/vitest`, `vendor/bin/phpunit`, `./gradlew`. */
function programOf(written: string): string {
  const at = Math.max(written.lastIndexOf("/"), written.lastIndexOf("\\"));
  if (at !== -1 && !PROGRAM_FOLDER.test(written.slice(0, at)) && !WRAPPER.test(written)) return "";
  const name = written.slice(at + 1).toLowerCase();
  return name.replace(/\.(?:bat|cmd|exe)$/, "").replace(/^(python|pypy|pip)[\d.]+$/, "$1");
}

function asksForHelp(args: Words): boolean {
  return args.some((word) => word === "--help" || word === "--version");
}

/** Programs that are checks in every form, by kind. */
const ALWAYS = byName({
  test: "ava bats cypress gotestsum jasmine jest karma mocha nosetests nox phpunit pest py.test pytest rspec tap tape tox unittest vitest ctest nextest",
  lint: "ansible-lint checkstyle eslint flake8 golangci-lint hadolint htmlhint ktlint markdownlint oxlint phpcs pylint rubocop shellcheck standard stylelint swiftlint tslint xo yamllint",
  type: "basedpyright flow mypy phpstan psalm pyre pyright pytype svelte-check tsc tsgo vue-tsc",
  build: "esbuild msbuild ninja rollup tsup webpack",
});

function byName(names: Readonly<Record<Kind, string>>): ReadonlyMap<string, Kind> {
  const kinds = ["test", "lint", "type", "build"] as const;
  return new Map(kinds.flatMap((kind) => names[kind].split(" ").map((name): [string, Kind] => [name, kind])));
}

/** Subcommands and options that make a program a check. */
const FORMS: ReadonlyMap<string, readonly (readonly [pattern: RegExp, kind: Kind])[]> = new Map([
  [
    "astro",
    [
      [/^check$/, "type"],
      [/^build$/, "build"],
    ],
  ],
  [
    "bazel",
    [
      [/^(?:test|coverage)$/, "test"],
      [/^build$/, "build"],
    ],
  ],
  ["biome", [[/^(?:check|ci|lint)$/, "lint"]]],
  ["black", [[/^--(?:check|diff)$/, "lint"]]],
  [
    "bun",
    [
      [/^test$/, "test"],
      [/^build$/, "build"],
    ],
  ],
  [
    "cargo",
    [
      [/^(?:test|t|nextest)$/, "test"],
      [/^clippy$/, "lint"],
      [/^(?:check|c)$/, "type"],
      [/^(?:build|b)$/, "build"],
    ],
  ],
  ["cmake", [[/^--build$/, "build"]]],
  [
    "deno",
    [
      [/^test$/, "test"],
      [/^lint$/, "lint"],
      [/^check$/, "type"],
    ],
  ],
  [
    "dotnet",
    [
      [/^test$/, "test"],
      [/^build$/, "build"],
      [/^format$/, "lint"],
    ],
  ],
  [
    "go",
    [
      [/^test$/, "test"],
      [/^vet$/, "lint"],
      [/^build$/, "build"],
    ],
  ],
  ["isort", [[/^--(?:check|check-only|diff)$/, "lint"]]],
  [
    "mix",
    [
      [/^test$/, "test"],
      [/^credo$/, "lint"],
      [/^dialyzer$/, "type"],
      [/^compile$/, "build"],
    ],
  ],
  [
    "next",
    [
      [/^build$/, "build"],
      [/^lint$/, "lint"],
    ],
  ],
  ["node", [[/^--test$/, "test"]]],
  ["playwright", [[/^test$/, "test"]]],
  ["prettier", [[/^(?:--check|-c|--list-different|-l)$/, "lint"]]],
  [
    "ruff",
    [
      [/^check$/, "lint"],
      [/^--(?:check|diff)$/, "lint"],
    ],
  ],
  [
    "swift",
    [
      [/^test$/, "test"],
      [/^build$/, "build"],
    ],
  ],
  ["vite", [[/^build$/, "build"]]],
  [
    "xcodebuild",
    [
      [/^test$/, "test"],
      [/^build$/, "build"],
    ],
  ],
  [
    "zig",
    [
      [/^test$/, "test"],
      [/^build$/, "build"],
    ],
  ],
]);

/** Programs that run the task, target or script named by the first plain word. */
const TASKS = new Set(
  "ant composer gradle gradlew grunt gulp invoke just lerna make gmake mvn mvnw nx rake sbt task turbo npm pnpm yarn".split(
    " ",
  ),
);
/** Builders without a task, that build. */
const BUILDERS = new Set(["ant", "gmake", "gradle", "gradlew", "make", "mvn", "mvnw"]);

function byProgram(program: string, args: Words): Kind | undefined {
  const always = ALWAYS.get(program);
  if (always) return always;
  const form = FORMS.get(program)?.find(([pattern]) => args.some((word) => pattern.test(word ?? "\0")));
  if (form) return form[1];
  if (!TASKS.has(program)) return undefined;
  const named = afterOptions(args, FOLDER_OPTION).filter(
    (word) => word !== undefined && !/^-|^(?:exec|run|run-script|run-many)$|=/.test(word),
  );
  const kinds = named.map((word) => kindOfTask(word ?? ""));
  if (BUILDERS.has(program)) return args.length === 0 ? "build" : kinds.find((kind) => kind !== undefined);
  return kinds[0];
}

/** Task names by kind, whole or before `:`, `-`, `.` or `_`: `test:unit`, `:app:test`, `lint-fix`. */
const TASK_KINDS: readonly (readonly [RegExp, Kind])[] = [
  [/^(?:check[:_-]?types|tsc|type[:_-]?check|types|mypy)(?![a-z])/, "type"],
  [
    /^(?:coverage|e2e|integration(?:-?test)?|spec|specs|t|test|tests|tst|unit|verify|(?:unit|acceptance)-tests?)(?![a-z])/,
    "test",
  ],
  [/^(?:check|clippy|eslint|format:check|lint|stylelint|style)(?![a-z])/, "lint"],
  [/^(?:assemble|build|bundle|compile|dist|package)(?![a-z])/, "build"],
];

function kindOfTask(task: string): Kind | undefined {
  const name = task.slice(task.lastIndexOf(":", task.startsWith(":") ? undefined : -1) + 1).toLowerCase();
  return TASK_KINDS.find(([pattern]) => pattern.test(name))?.[1];
}

/** Returns the command that a program runs; `undefined` if the program itself is the command. */
type Inner = (args: Words) => Words | undefined;

/** Skips options, each with a value if it is in `valued`. */
function afterOptions(args: Words, valued?: RegExp): Words {
  let at = 0;
  while (args[at]?.startsWith("-")) {
    if (args[at] === "--") return args.slice(at + 1);
    at += valued?.test(args[at] ?? "") === true ? 2 : 1;
  }
  return args.slice(at);
}

/** Reads `PROGRAM WORD COMMAND`: `uv run pytest`. */
const behind =
  (words: RegExp, valued?: RegExp): Inner =>
  (args) => {
    const [first, ...rest] = afterOptions(args, valued);
    return first !== undefined && words.test(first) ? afterOptions(rest, valued) : undefined;
  };

const PACKAGE_OPTION = /^(?:-p|--package)$/;

/** Options of package managers and builders that name a folder or a package. */
const FOLDER_OPTION = /^(?:-[CFfw]|--(?:cwd|dir|directory|filter|prefix|workspace))$/;

/** A package manager runs the program of a package under the program's name, unless the name is one of a script. */
const packageManager: Inner = (args) => {
  const rest = afterOptions(args, FOLDER_OPTION);
  const [first, second] = rest;
  if (first === "exec" || first === "dlx" || first === "x") return afterOptions(rest.slice(1), PACKAGE_OPTION);
  const name = first === "run" || first === "run-script" ? second : first;
  if (name === undefined || kindOfTask(name) !== undefined) return undefined;
  return first !== name || !ALWAYS.has(name) ? undefined : rest;
};

const INNER: ReadonlyMap<string, Inner> = new Map<string, Inner>([
  ["bundle", behind(/^exec$/)],
  ["bunx", (args) => afterOptions(args, PACKAGE_OPTION)],
  ["conda", behind(/^run$/, /^-[np]$/)],
  ["hatch", behind(/^run$/)],
  ["mise", behind(/^(?:exec|x)$/)],
  [
    "node",
    (args) => (/node_modules\//.test(args[0] ?? "") ? [scriptName(args[0] ?? ""), ...args.slice(1)] : undefined),
  ],
  ["npm", packageManager],
  ["npx", (args) => afterOptions(args, PACKAGE_OPTION)],
  ["pdm", behind(/^run$/)],
  ["pipenv", behind(/^run$/)],
  ["pipx", behind(/^run$/)],
  ["pnpm", packageManager],
  ["pnpx", (args) => afterOptions(args)],
  ["poetry", behind(/^run$/)],
  ["pypy", pythonModule],
  ["python", pythonModule],
  ["py", pythonModule],
  ["rye", behind(/^run$/)],
  ["uv", behind(/^run$/, /^--(?:with|python|extra|group|env-file|directory|project)$/)],
  ["uvx", (args) => afterOptions(args, /^--(?:with|from|python)$/)],
  ["yarn", packageManager],
]);

function pythonModule(args: Words): Words | undefined {
  const at = args.indexOf("-m");
  const areOptions = args.slice(0, Math.max(at, 0)).every((word) => word?.startsWith("-") === true);
  return at !== -1 && areOptions ? args.slice(at + 1) : undefined;
}

/** Turns `node_modules/vitest/vitest.mjs` into `vitest`. */
function scriptName(path: string): string {
  return path
    .slice(path.lastIndexOf("/") + 1)
    .replace(/\.[cm]?js$/, "")
    .replace(/^_mocha$/, "mocha");
}
