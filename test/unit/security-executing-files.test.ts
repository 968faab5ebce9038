import { describe, expect, it } from "vitest";
import { isExecuting } from "../../src/security/executing-files.ts";

/** Files that make other programs run commands, even if the project is never run. */
const EXECUTING = {
  "agents and MCP clients": `.claude/settings.json .claude/settings.local.json .claude/commands/x.md .claude/agents/x.md
    .claude.json .mcp.json mcp.json .cursor/mcp.json .cursor/hooks.json .gemini/settings.json .codex/config.toml
    .qwen/settings.json opencode.json opencode.jsonc .opencode/plugin/x.ts .windsurf/mcp.json .continue/config.yaml
    .aider.conf.yml .clinerules/x.md .roo/mcp.json .kiro/settings/mcp.json .amazonq/mcp.json .junie/mcp/mcp.json
    claude_desktop_config.json crush.json .vscode/mcp.json`,
  "shells and terminals": `.bashrc .bash_profile .bash_aliases .bash_logout .profile .zshrc .zshenv .zprofile .zlogin
    .kshrc .cshrc .tcshrc .login .inputrc .envrc .config/fish/config.fish profile.ps1
    Microsoft.PowerShell_profile.ps1 .tmux.conf .screenrc mise.toml .tool-versions`,
  editors: `.vimrc .exrc .gvimrc _vimrc .nvim.lua .vim/plugin/x.vim .emacs .emacs.d/init.el .dir-locals.el
    .vscode/tasks.json .vscode/settings.json x.code-workspace .idea/workspace.xml .idea/runConfigurations/x.xml
    .zed/tasks.json x.sublime-project .ycm_extra_conf.py .clangd .project .pylintrc pylintrc .rubocop.yml .luarc.json .solargraph.yml`,
  "debuggers and interpreters": `.gdbinit .lldbinit program-gdb.py .pdbrc sitecustomize.py usercustomize.py
    lib/evil.pth .pythonrc.py .ipython/profile_default/startup/x.py .Rprofile .irbrc .pryrc .ghci .psqlrc .sqliterc`,
  "build tools": `.npmrc .yarnrc.yml .yarn/plugins/x.cjs .pnpmfile.cjs bunfig.toml .cargo/config.toml
    rust-toolchain.toml .mvn/extensions.xml .gradle/init.gradle init.gradle .bazelrc tools/bazel pip.conf
    Directory.Build.props .bundle/config .eslintrc.js`,
  "CI and development environments": `.github/workflows/x.yml .github/actions/x/action.yml .gitlab-ci.yml
    .circleci/config.yml .travis.yml azure-pipelines.yml Jenkinsfile .drone.yml .woodpecker.yml .buildkite/pipeline.yml
    bitbucket-pipelines.yml .devcontainer/devcontainer.json .devcontainer.json .gitpod.yml .replit`,
  "git and its like": `.git/config .git/hooks/pre-commit .gitconfig .gitmodules .gitattributes HEAD config
    hooks/post-checkout hooks/pre-commit bare.git/config objects/info/alternates commondir .githooks/pre-push
    .husky/pre-commit .pre-commit-config.yaml lefthook.yml .lintstagedrc.js .hg/hgrc .hgrc .jj/repo/config.toml`,
  "services and start-up": `.local/share/systemd/user/x.service .config/systemd/user/x.service
    .config/autostart/x.desktop systemd/user/x.timer Library/LaunchAgents/x.plist crontab cron.d/x .xinitrc .xprofile
    .pam_environment x.desktop`,
  "on PATH, and programs that run others": `bin/git bin/node bin/x.cmd node_modules/.bin/tsc .local/bin/ls
    .venv/bin/python venv/bin/activate sbin/x .ssh/config .ssh/rc .gnupg/gpg.conf .netrc .curlrc .lessfilter .mailcap
    .ripgreprc .docker/config.json .aws/config .kube/config`,
  "by other spellings": `.VIMRC .Bashrc .GIT/config .g\u200Cit/config .git\u2063/config .vim\u202Erc .bashrc\uFEFF .git./config .bashrc::$DATA
    GIT~1/config .\u017F\u017Fh/config HEAD\u200B jenkinsfile`,
};

const ORDINARY = `a.ts src/hooks/useState.ts src/bin/main.rs src/config/index.ts config/database.yml config.json bin/readme.md
  package.json Makefile conftest.py vite.config.ts tsconfig.json eslint.config.js README.md CLAUDE.md AGENTS.md .gitignore
  .editorconfig .prettierrc .eslintrc.json .nvmrc .env.example docs/git.md src/head.ts heads/main app/services/x.service.ts
  .claude/worktrees/one/src/a.ts .cursor/worktrees/repo/x/a.ts lib/shims/x.ts profile.md public/autostart.js .dockerignore
  src/update/hooks.ts \u00FCber.txt test/fixtures/git/a.txt`;

describe.each(Object.entries(EXECUTING))("files that make programs run commands: %s", (_, names) => {
  it.each(names.trim().split(/[ \n]+/))("writing %j is more than an edit", (name) => {
    expect([`/home/ann/p/${name}`, `/home/ann/p/packages/one/${name}`].map(isExecuting)).toEqual([true, true]);
    expect(isExecuting(`C:\\p\\${name.replaceAll("/", "\\")}`)).toBe(true);
  });
});

it.each(ORDINARY.trim().split(/\s+/))("writing %j is a plain edit", (name) => {
  expect(isExecuting(`/home/ann/p/${name}`)).toBe(false);
});
