import { expect, it } from "vitest";
import { testChangesOf } from "../../src/claude/watch/test-changes.ts";
import { testLanguageOf } from "../../src/claude/watch/test-languages.ts";

interface Row {
  readonly title: string;
  readonly path: string;
  readonly before: string;
  readonly after: string;
  readonly tests: object | undefined;
}

const JS = "test/a.test.ts";

const ROWS: Row[] = [
  { title: "no change of tests", path: JS, before: 'it("a");', after: 'it("a");\nconst x = 1;', tests: undefined },
  { title: "a removed test", path: JS, before: 'it("a");\ntest("b");', after: 'it("a");', tests: { removed: 1 } },
  { title: "a renamed test", path: JS, before: 'it("a");\nit("b");', after: 'it("a");\nit("c");', tests: undefined },
  {
    title: "a test that was moved",
    path: JS,
    before: 'it("a");\nit("b");',
    after: 'it("b");\nit("a");',
    tests: undefined,
  },
  {
    title: "a test put into a comment",
    path: JS,
    before: 'it("a");\nit("b");',
    after: 'it("a");\n// it("b");',
    tests: { removed: 1 },
  },
  { title: "all tests removed", path: JS, before: 'it("a");\nit("b");', after: "", tests: { emptied: 1, removed: 2 } },
  { title: "a skipped test", path: JS, before: 'it("a");', after: 'it.skip("a");', tests: { skipped: 1 } },
  {
    title: "a skipped suite",
    path: JS,
    before: 'describe("a", f);',
    after: 'xdescribe("a", f);',
    tests: { skipped: 1 },
  },
  { title: "a test that is no more skipped", path: JS, before: 'it.skip("a");', after: 'it("a");', tests: undefined },
  {
    title: "another test skipped",
    path: JS,
    before: 'it.skip("a");\nit("b");',
    after: 'it("a");\nit.skip("b");',
    tests: { skipped: 1 },
  },
  {
    title: "only one test",
    path: JS,
    before: 'it("a");\nit("b");',
    after: 'it.only("a");\nfit("b");',
    tests: { only: 2 },
  },
  {
    title: "a table of tests",
    path: JS,
    before: 'it.each([1])("a", f);',
    after: "x();",
    tests: { emptied: 1, removed: 1 },
  },
  { title: "a hook of Playwright", path: JS, before: "test.beforeEach(f);", after: "f();", tests: undefined },
  { title: "a todo", path: JS, before: 'test("a", f);', after: 'test.todo("a");', tests: { skipped: 1 } },
  {
    title: "Python",
    path: "tests/test_a.py",
    before: "def test_a():\n  pass\nasync def test_b():\n  pass\n",
    after: "@pytest.mark.skip\ndef test_a():\n  pass\n",
    tests: { removed: 1, skipped: 1 },
  },
  {
    title: "Go",
    path: "a/sum_test.go",
    before: 'func TestA(t *testing.T) {\n\tt.Run("x", f)\n}\nfunc TestB(t *testing.T) {}',
    after: "func TestA(t *testing.T) {\n\tt.Skip()\n}",
    tests: { removed: 2, skipped: 1 },
  },
  {
    title: "Rust",
    path: "src/lib.rs",
    before: "#[test]\nfn a() {}\n#[tokio::test]\nasync fn b() {}\nfn c() {}",
    after: "#[test]\n#[ignore]\nfn a() {}\nfn b() {}",
    tests: { removed: 1, skipped: 1 },
  },
  {
    title: "Java",
    path: "src/test/java/SumTest.java",
    before: '@Test\npublic void a() {}\n@Test void b() {}\n@Test\n@Tag("x")\nvoid c() {}',
    after: "@Disabled\n@Test\npublic void a() {}\n",
    tests: { removed: 2, skipped: 1 },
  },
  {
    title: "Kotlin",
    path: "src/test/kotlin/SumTest.kt",
    before: "@Test\nfun `adds numbers`() {}\n@Test fun b() {}",
    after: "@Test fun b() {}",
    tests: { removed: 1 },
  },
  {
    title: "Ruby",
    path: "spec/sum_spec.rb",
    before: "it 'a' do\nend\nit \"b\" do\nend\ndef test_c\nend",
    after: "xit 'a' do\nend\nfit \"b\" do\nend",
    tests: { removed: 1, skipped: 1, only: 1 },
  },
  {
    title: "PHP",
    path: "tests/SumTest.php",
    before: "public function testA() {}\n#[Test]\npublic function b(): void {}\nit('c', fn() => 1);",
    after: "public function testA() { $this->markTestSkipped(); }",
    tests: { removed: 2, skipped: 1 },
  },
  {
    title: "C#",
    path: "Sum.Tests/SumTests.cs",
    before: "[Fact]\npublic void A() {}\n[Theory]\n[InlineData(1)]\npublic async Task B(int x) {}",
    after: '[Fact(Skip = "later")]\npublic void A() {}',
    tests: { removed: 1, skipped: 1 },
  },
];

it.each(ROWS)("$title in $path gives $tests", ({ after, before, path, tests }) => {
  expect(testChangesOf([{ path, change: "changed", before, after }]).get(path)).toEqual(tests);
});

it("a test that was moved to another file is not removed", () => {
  const found = testChangesOf([
    { path: "a.test.js", change: "changed", before: 'it("a");\nit("b");', after: 'it("a");' },
    { path: "b.test.js", change: "added", after: 'it("b");' },
  ]);
  expect(found.size).toBe(0);
});

it("deleted test files and those that no runner finds any more are told", () => {
  const before = 'it("a");';
  const found = testChangesOf([
    { path: "a.test.js", change: "deleted" },
    { path: "src/lib.rs", change: "deleted", before: "fn main() {}" },
    { path: "src/sum.rs", change: "deleted", before: "#[test]\nfn a() {}" },
    { path: "a.js.bak", from: "b.test.js", change: "renamed", before, after: before },
    { path: "c.test.js", change: "changed" },
  ]);
  expect(Object.fromEntries(found)).toEqual({
    "a.test.js": { deleted: 1 },
    "src/sum.rs": { deleted: 1 },
    "a.js.bak": { emptied: 1 },
  });
});

it("files that hold no tests by their name are left alone", () => {
  const paths = [
    "src/test.css",
    "src/latest.ts",
    "src/contest.ts",
    "attest.py",
    "src/Sum.java",
    "lib/sum.rb",
    "README.md",
  ];
  expect(paths.filter((path) => testLanguageOf(path))).toEqual([]);
});
