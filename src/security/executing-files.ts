import { foldedSpellings } from "./normal-path.ts";

/**
 * Files that make a program run commands without a run of the project: programs read them at their start, when opening a folder
 * or reading a repository. Writing such a file is more than an edit. Files run only by a build, a test or a start of the
 * project (package.json, Makefile, conftest.py) are edits: docs/approvals.md names them.
 */

/**
 * Patterns by the programs that run the files, in lower case. `name` is a file at any depth, `folder/` any entry with this name
 * and everything in a folder of this name, `a/b` and `a/b/` match two names, `*` any part of a name.
 */
const EXECUTING: readonly (readonly [patterns: string, reason: string])[] = [
  // Agents and MCP clients
  [".claude/ .claude.json", "Claude Code: hooks, commands, agents, permissions, MCP servers"],
  [".mcp.json mcp.json mcp_config.json *mcp_settings.json", "MCP clients start the servers named in it"],
  ["claude_desktop_config.json", "Claude Desktop starts the MCP servers named in it"],
  [".cursor/ .cursorrules", "Cursor: MCP servers, hooks, rules of its agent"],
  [
    ".gemini/ .qwen/ .codex/ .copilot/",
    "Gemini CLI, Qwen Code, Codex, Copilot: MCP servers, hooks, sandbox and approval settings",
  ],
  ["opencode.json opencode.jsonc .opencode/ .opencode.json", "opencode: MCP servers, plugins, permissions"],
  [
    "crush.json .crush.json .crush/ .goose/ .goosehints .amp/ .factory/",
    "Crush, Goose, Amp, Factory: MCP servers, commands",
  ],
  [".windsurf/ .windsurfrules .codeium/ .continue/ .continuerc.json", "Windsurf, Continue: MCP servers, commands"],
  [
    ".aider* .cline/ .clinerules/ .roo/ .roomodes .kilocode/",
    "Aider, Cline, Roo, Kilo: commands that run unasked, MCP servers",
  ],
  [".amazonq/ .kiro/ .junie/ .augment/ .trae/ .warp/ .zencoder/", "further agents: MCP servers, hooks"],
  // Shells and terminals
  [".bashrc .bash_* .profile .bash.bashrc bashrc", "bash runs it when it starts or ends"],
  [".zshenv .zshrc .zprofile .zlogin .zlogout .zsh/ .oh-my-zsh/", "zsh runs it when it starts or ends"],
  [".kshrc .mkshrc .shrc .shinit .cshrc .tcshrc .login .logout .yashrc", "other shells run it when they start or end"],
  [".xonshrc .xonsh/ .elvish/ config.fish conf.d/*.fish", "xonsh, elvish, fish run it when they start"],
  ["profile.ps1 *_profile.ps1 autoexec.bat autorun.inf", "PowerShell and Windows run it when they start"],
  [".inputrc", "readline binds keys to commands"],
  [".envrc .direnvrc .direnv/ .autoenv .autoenv.zsh", "direnv and autoenv run it when a shell enters the folder"],
  [
    "mise.toml .mise.toml mise.local.toml .mise.local.toml .mise/ .rtx.toml .tool-versions .asdfrc",
    "mise and asdf: hooks and programs on PATH when a shell enters the folder",
  ],
  [
    ".tmux.conf .tmux/ .screenrc .zellij/ .wezterm.lua wezterm.lua kitty.conf .alacritty.*",
    "terminals run what it names when they start",
  ],
  // Editors
  [
    ".vimrc .gvimrc _vimrc _gvimrc .exrc _exrc .lvimrc .vim/ .nvimrc .nvim.lua .nvim/",
    "vi, Vim and Neovim run it when they start in the folder",
  ],
  [".emacs .emacs.el .emacs.d/ .dir-locals.el .dir-locals-2.el", "Emacs runs it when it opens a file below"],
  [".vscode/ *.code-workspace .vs/ .theia/ .zed/ .fleet/ .nova/", "editors: tasks, debuggers, paths of programs"],
  [".idea/ .run/ *.iml *.ipr *.iws", "IntelliJ: run configurations, start-up tasks, file watchers"],
  [
    ".project .externaltoolbuilders/ .settings/ nbproject/",
    "Eclipse and NetBeans: builders that run when it is opened",
  ],
  [
    "*.sublime-project *.sublime-workspace .helix/ .kakrc kakrc .nanorc .micro/",
    "Sublime Text, Helix, Kakoune, nano: build systems, language servers, spellers",
  ],
  [".ycm_extra_conf.py .clangd .ccls .netrwhist .sourcekit-lsp/", "language servers load or run what it names"],
  // Debuggers and interpreters
  [
    ".gdbinit .gdbearlyinit gdbinit *-gdb.py *-gdb.gdb *-gdb.scm .cgdb/",
    "GDB runs it when it starts, or loads the program",
  ],
  [".lldbinit .lldbinit-* .radare2rc .rizinrc .dlv/ .dbxrc .perldb", "LLDB and other debuggers run it when they start"],
  [
    ".pdbrc .pdbrc.py .pythonrc .pythonrc.py .pystartup sitecustomize.py usercustomize.py *.pth",
    "Python runs it when it starts",
  ],
  [".ipython/ .jupyter/ ipython_config.py jupyter_*config.py", "IPython and Jupyter run it when they start"],
  [".venv/ pyvenv.cfg", "the Python that editors and shells take for the project's"],
  [
    ".irbrc .pryrc .rspec .gemrc .bundle/ .rdbgrc .rdbgrc.rb",
    "Ruby: interpreter, gem and Bundler run or load it when they start",
  ],
  [
    ".rprofile .renviron .octaverc .juliarc.jl startup.jl .gnuplot .maximarc",
    "R, Octave, Julia, gnuplot run it when they start",
  ],
  [
    ".ghci .ocamlinit .sbclrc .guile .iex.exs .erlang .lein/ .clojure/ .noderc",
    "further interpreters run it when they start",
  ],
  [
    ".psqlrc .sqliterc .my.cnf .mylogin.cnf .mongorc.js .mongoshrc.js .duckdbrc",
    "database clients run it when they start",
  ],
  // Package managers and build tools: files read in every folder and at every start
  [
    ".npmrc .yarnrc .yarnrc.yml .yarn/ .pnp.cjs .pnp.loader.mjs .pnpmfile.cjs .pnpmfile.mjs pnpm-workspace.yaml bunfig.toml",
    "npm, Yarn, pnpm, Bun: the shell, node options, plugins, preloads",
  ],
  [
    ".cargo/ rust-toolchain rust-toolchain.toml",
    "Cargo: runners, linkers, wrappers, toolchains; editors run it on opening",
  ],
  [
    ".mvn/ .m2/ .gradle/ init.gradle init.gradle.kts init.d/*.gradle* .sbtopts .sbtrc .jvmopts .ant/ .antrc",
    "Maven, Gradle, sbt, Ant: extensions, agents of the JVM",
  ],
  [
    ".bazelrc *.bazelrc tools/bazel .buckconfig .pants.rc .condarc .pip/ pip.conf pip.ini .pypirc .pydistutils.cfg",
    "Bazel, Buck, pip, conda: wrappers, where packages come from",
  ],
  [
    "directory.build.props directory.build.targets directory.build.rsp msbuild.rsp .nuget/ nuget.config",
    "MSBuild heeds it in every project below; editors run it on opening",
  ],
  [
    ".composer/ .swiftpm/ .cabal/ .stack/ .opam/ .cpan/ .rebar3/ .hex/ .mix/ .platformio/",
    "package managers: plug-ins and where packages come from",
  ],
  [
    ".terraformrc terraform.rc .terraform/ ansible.cfg .ansible.cfg .ansible/ .pulumi/ .vagrant.d/",
    "infrastructure tools load plug-ins from it",
  ],
  [
    ".eslintrc.js .eslintrc.cjs .prettierrc.js .prettierrc.cjs .prettierrc.mjs .prettierrc.ts .stylelintrc.js .stylelintrc.cjs",
    "linters and formatters that editors run on opening",
  ],
  [
    ".pylintrc pylintrc .rubocop.yml .luarc.json .luarc.jsonc .solargraph.yml",
    "linters and language servers load plug-ins that it names",
  ],
  [
    ".babelrc.js .babelrc.cjs .mocharc.js .mocharc.cjs .lintstagedrc* .watchmanconfig .ctags .ctags.d/",
    "tools that run it beside an editor or a commit",
  ],
  // CI and development environments
  [".github/ .gitea/ .forgejo/ .gitlab/ .gitlab-ci.yml *.gitlab-ci.yml", "CI of GitHub, Gitea, Forgejo, GitLab"],
  [
    ".circleci/ .travis.yml .buildkite/ .drone.yml .drone.star .woodpecker/ .woodpecker.y*ml .cirrus.yml .cirrus.star .semaphore/",
    "CI",
  ],
  [
    "jenkinsfile* *.jenkinsfile .jenkins/ azure-pipelines* .azure-pipelines/ bitbucket-pipelines.yml .appveyor.yml appveyor.yml",
    "CI",
  ],
  [
    ".teamcity/ .tekton/ .harness/ .builds/ .build.yml .ci/ codefresh.yml wercker.yml cloudbuild.y*ml buildspec.y*ml codemagic.yaml",
    "CI",
  ],
  [
    ".devcontainer/ .devcontainer.json .gitpod.yml .gitpod.dockerfile .gitpod/ .ona/ .idx/ .replit replit.nix .codesandbox/ .stackblitzrc",
    "development environments run it when they are opened",
  ],
  // git, and folders that git takes for a repository
  [
    ".git/ *.git/ .gitconfig gitconfig .gitmodules .gitattributes .lfsconfig",
    "git: hooks, filters, commands of its configuration",
  ],
  [
    "head config config.worktree commondir gitdir packed-refs info/attributes objects/info/alternates",
    "git takes a folder with these for a repository, and runs what its configuration names",
  ],
  [
    "hooks/applypatch-msg hooks/pre-applypatch hooks/post-applypatch hooks/pre-commit hooks/pre-merge-commit hooks/prepare-commit-msg hooks/commit-msg hooks/post-commit hooks/pre-rebase hooks/post-checkout hooks/post-merge hooks/pre-push hooks/pre-receive hooks/update hooks/proc-receive hooks/post-receive hooks/post-update hooks/reference-transaction hooks/push-to-checkout hooks/pre-auto-gc hooks/post-rewrite hooks/sendemail-validate hooks/fsmonitor-watchman hooks/p4-* hooks/post-index-change",
    "git's hooks, of a bare repository too",
  ],
  [
    ".githooks/ .git-hooks/ githooks/ .husky/ .huskyrc* .pre-commit-config.y*ml .pre-commit-hooks.y*ml lefthook.* .lefthook.* lefthook-local.* .lefthook-local.* .lefthook/ .overcommit.yml captainhook.json .captainhook.json grumphp.yml .simple-git-hooks.*",
    "hooks of git by other means",
  ],
  [
    ".hg/ .hgrc .svn/ .bzr/ .jj/ .jjconfig.toml .pijul/ .sl/ .fossil-settings/ .tigrc",
    "other version control: hooks, commands of its configuration",
  ],
  // Services and start-up
  [
    ".config/ .local/bin/ .local/sbin/ .local/lib/ .local/share/systemd/ .local/share/applications/ .local/share/dbus-1/ .local/share/kservices* .xinitrc .xserverrc .xprofile .xsession .xsessionrc .xresources .xdefaults .pam_environment",
    "services, programs on PATH and start-up of a user's session",
  ],
  [
    "systemd/user/ systemd/system/ *.service.d/ launchagents/ launchdaemons/ startupitems/ programs/startup/ dbus-1/",
    "services and what starts with the user's session",
  ],
  [
    "crontab crontabs/ cron.d/ cron.daily/ cron.hourly/ cron.weekly/ cron.monthly/ init.d/ rc.d/ rc.local rc.conf",
    "what runs at set times and at the start of the machine",
  ],
  [
    "profile.d/ ld.so.preload ld.so.conf ld.so.conf.d/ sudoers sudoers.d/ rules.d/*.rules *.desktop *.plist.d/ .application-scripts/",
    "what the system reads for every program or user",
  ],
  // Programs that start further programs
  [
    ".ssh/ .gnupg/ .netrc _netrc .curlrc _curlrc .wgetrc .aws/ .kube/ .docker/ .azure/ .boto",
    "connections and credentials: commands that are run for them",
  ],
  [
    ".lessfilter .lesskey .lessopen .less .mailcap .mailrc .muttrc .mutt/ .ripgreprc .ackrc .rgrc .fdrc",
    "programs that pass files to other programs",
  ],
  // On PATH
  [
    "node_modules/.bin/ .bin/ bin/*.sh bin/*.bash bin/*.cmd bin/*.bat bin/*.exe bin/*.com bin/*.ps1 bin/*.vbs sbin/ .shims/",
    "executables in folders that stand on PATH",
  ],
];

/** Executable without an extension, as in `bin/git`. A source file such as `bin/main.rs` does not match. */
const BARE_EXECUTABLE = /(?:^|\/)bin\/[^/.]+$/;

/** Short name on Windows, which can stand for any file. */
const SHORT_NAME = /(?:^|\/)[^/]{1,6}~\d+(?:\.[^/]{0,3})?(?:\/|$)/;

/** Work tree of an agent. Holds ordinary files, although the path contains a listed folder. */
const WORK_TREE = /\/\.(?:claude|codex|cursor)\/worktrees\/[^/]+/;

const EXPRESSION = new RegExp(
  EXECUTING.flatMap(([patterns]) => patterns.split(" "))
    .map(toSource)
    .join("|"),
  "s",
);

function toSource(pattern: string): string {
  const isFolder = pattern.endsWith("/");
  const parts = (isFolder ? pattern.slice(0, -1) : pattern).replaceAll(/[.+]/g, "\\$&").replaceAll("*", "[^/]*");
  return `(?:^|/)${parts}${isFolder ? "(?:/|$)" : "$"}`;
}

/**
 * True if the file at this absolute path makes a program run commands, in any spelling that a file system could take for
 * `path`.
 */
export function isExecuting(path: string): boolean {
  return foldedSpellings(path)
    .map((spelling) => spelling.replaceAll("\\", "/").replace(WORK_TREE, ""))
    .some((spelling) => EXPRESSION.test(spelling) || BARE_EXECUTABLE.test(spelling) || SHORT_NAME.test(spelling));
}
