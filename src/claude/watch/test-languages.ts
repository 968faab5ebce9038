/** Names of test files, declarations of tests, and marks that leave tests out, by language. All patterns fit a single line. */

interface TestLanguage {
  /** Paths of test files. */
  readonly files: RegExp;
  /** Lines that declare a test. The first group that matches is the name. */
  readonly declares: readonly RegExp[];
  /** Lines that announce a test declared by the next line that `named` fits. */
  readonly announces?: RegExp;
  readonly named?: RegExp;
  readonly skips: RegExp;
  readonly focuses?: RegExp;
}

const JAVASCRIPT: TestLanguage = {
  files:
    /(?:^|\/)(?:(?:__tests__|tests?|specs?|e2e|cypress)\/.+|[^/]*[._-](?:test|spec|cy|e2e)|tests?|spec)\.[cm]?[jt]sx?$/i,
  declares: [
    /^\s*(?:await |return |void )?(?:Deno\.)?[xf]?(?:it|test|specify)(?!\.(?:describe|step|before|after|use|extend|configure|info|set|slow|expect|suite))(?:\.\w+)*\s*(?:[(`]|$)(?:\s*(?:"([^"]*)"|'([^']*)'|`([^`]*)`))?/,
  ],
  skips:
    /\b(?:it|test|describe|suite|context|specify)(?:\.\w+)*\.(?:skip|skipIf|todo|fixme|failing|fails)\b|\bx(?:it|test|describe|context|specify)\s*[(.`]|\b(?:this|t|ctx|context)\.(?:skip|todo)\(|\b(?:skip|todo|ignore):\s*(?:true|["'`])/,
  focuses:
    /\b(?:it|test|describe|suite|context|specify)(?:\.\w+)*\.only\b|\bf(?:it|describe|context)\s*[(.`]|\bonly:\s*true/,
};

const PYTHON: TestLanguage = {
  files: /(?:^|\/)(?:test_[^/]*|[^/]*_test|tests?(?:\/.+)?)\.py$/,
  declares: [/^\s*(?:async\s+)?def\s+(test\w*)\s*\(/],
  skips:
    /@(?:pytest\.)?mark\.(?:skip|skipif|xfail)\b|@(?:unittest\.)?(?:skip|skipIf|skipUnless|expectedFailure)\b|\bpytest\.(?:skip|xfail)\(|\bself\.skipTest\(|\braise\s+(?:unittest\.)?SkipTest\b|\bpytestmark\s*=.*\bskip/,
};

const GO: TestLanguage = {
  files: /_test\.go$/,
  declares: [/^func\s+(?:\([^)]*\)\s*)?((?:Test|Benchmark|Fuzz|Example)\w*)\s*\(/, /^\s*\w+\.Run\(\s*["`]([^"`]*)["`]/],
  skips: /\b[tbf]b?\.Skip(?:f|Now)?\(/,
};

const RUST: TestLanguage = {
  files: /\.rs$/,
  declares: [],
  announces: /#\[(?:\w+::)*(?:test|rstest|test_case|bench|quickcheck)\b/,
  named: /\bfn\s+(\w+)/,
  skips: /#\[(?:ignore|cfg_attr\(.*\bignore)\b/,
};

const JVM: TestLanguage = {
  files: /(?:^|\/)(?:(?:[^/]*[a-z])?[tT]est\/.+|[^/]*(?:Tests?|IT|Spec)|Test[^/]*)\.(?:java|kts?|groovy|scala)$/,
  declares: [],
  announces: /@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b/,
  named: /(?:\bfun\s+|[\w>\]]\s+)(`[^`]+`|\w+)\s*\(/,
  skips: /@(?:\w+\.)*(?:Ignore|Disabled\w*|EnabledIf\w*)\b/,
};

const RUBY: TestLanguage = {
  files: /(?:^|\/)(?:[^/]*_(?:spec|test)|test_[^/]*|(?:spec|tests?)\/.+)\.rb$/,
  declares: [
    /^\s*[xf]?(?:it|specify|scenario|example|test|should)\s*\(?\s*(?:"([^"]*)"|'([^']*)')/,
    /^\s*def\s+(test_\w+)/,
    /^\s*[xf]?it\s*(?:\{|do\b)/,
  ],
  skips:
    /^\s*(?:x(?:it|describe|context|specify|scenario|example)|pending|skip)\b|,\s*(?::skip|:pending|(?:skip|pending):\s*\S)/,
  focuses: /^\s*(?:f(?:it|describe|context|specify|scenario|example)|focus)\b|,\s*(?::focus|focus:\s*true)\b/,
};

const PHP: TestLanguage = {
  files: /(?:^|\/)(?:[^/]*Test|tests?\/.+)\.php$/i,
  declares: [/\bfunction\s+(test\w*)\s*\(/i, /^\s*(?:it|test)\(\s*(?:"([^"]*)"|'([^']*)')/],
  announces: /#\[(?:\w+\\)*Test\b|^\s*(?:\/\*)?\*+\s*@test\b/,
  named: /\bfunction\s+(\w+)\s*\(/,
  skips: /\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo|markTest\w+)\(/,
  focuses: /->only\(/,
};

const CSHARP: TestLanguage = {
  files: /(?:^|\/)(?:[^/]*(?:Tests?|Specs?)|(?:[^/]*\.)?[Tt]ests?\/.+)\.cs$/,
  declares: [],
  announces: /\[(?:[\w.]+\.)?(?:Fact|Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod)\b/,
  named: /\b(?:public|private|internal|protected|static|async|void|Task)\b.*?\b(\w+)\s*(?:<[^>]*>)?\s*\(/,
  skips: /\bSkip\s*=\s*[^=\s]|\[(?:[\w.]+\.)?(?:Ignore|Explicit)\b|\bAssert\.(?:Ignore|Inconclusive|Skip)\(/,
};

const LANGUAGES = [JAVASCRIPT, PYTHON, GO, RUST, JVM, RUBY, PHP, CSHARP];

/** `undefined` if the path is not of a test file. Any file of Rust can hold tests. */
export function testLanguageOf(path: string): TestLanguage | undefined {
  return LANGUAGES.find(({ files }) => files.test(path));
}

/** True if the name alone tells that a file holds tests: to delete a file of Rust need not delete tests. */
export function isTestFile(path: string): boolean {
  return RUST.files.test(path)
    ? /(?:^|\/)tests?(?:\/.+)?\.rs$|_test\.rs$/.test(path)
    : testLanguageOf(path) !== undefined;
}

/** Maximum characters of a line that are looked at, so that no pattern takes long. */
const MAX_COLUMNS = 400;
/** Maximum number of lines from the announcement of a test to its declaration. */
const MAX_BETWEEN = 12;

/** Returns the first group that matched. */
function nameIn(match: readonly (string | undefined)[]): string | undefined {
  return match.slice(1).find((each) => each !== undefined);
}

/** Tests and marks in one text, in order. */
export interface TestsIn {
  readonly declared: readonly string[];
  readonly skips: readonly string[];
  readonly focuses: readonly string[];
}

export function testsIn(text: string, { announces, declares, focuses, named, skips }: TestLanguage): TestsIn {
  const found = { declared: [] as string[], skips: [] as string[], focuses: [] as string[] };
  let announced = 0;
  for (const whole of text.split("\n")) {
    const line = whole.slice(0, MAX_COLUMNS);
    if (/^\s*(?:\/\/|#(?!\[)|--)/.test(line)) continue;
    if (skips.test(line)) found.skips.push(line.trim());
    if (focuses?.test(line) === true) found.focuses.push(line.trim());
    const direct = declares.map((each) => each.exec(line)).find((each) => each !== null);
    if (direct) found.declared.push(nameIn(direct) ?? line.trim());
    announced = announces?.test(line) === true ? MAX_BETWEEN : announced - 1;
    const later =
      announced > 0 && !direct ? named?.exec(line.replace(/^\s*(?:\[[^\]]*\]\s*|@\w+(?:\([^)]*\))?\s*)+/, "")) : null;
    if (!later) continue;
    found.declared.push(later[1] ?? line.trim());
    announced = 0;
  }
  return found;
}
