import { PLAIN_FORMS } from "./plain-forms.ts";
import type { ShellCommand } from "./shell-command.ts";

/**
 * Programs that run other commands: given as a command, given as code, or named by an option or an escape. The list cannot be
 * complete; an unknown program counts as running only itself.
 */

const BY_KIND: Readonly<Record<string, string>> = {
  "shells and their like":
    "ash bash bsd-csh busybox coreutils csh dash elvish fish ksh ksh93 lksh mksh nu oksh osh posh powershell pwsh rbash rc rksh rzsh sash sh tcsh toybox xonsh yash zsh",
  "words of the shell that run, define or load something":
    ". alias autoload bind bindkey caller compgen complete compopt coproc declare disable emulate enable eval exec fc function getopts hash history integer let local mapfile nocorrect noglob popd pushd read readarray readonly repeat sched set shopt source trap typeset unalias unset vared zcompile zle zmodload zparseopts zstyle",
  "programs that run the command they are given":
    "at batch bwrap capsh catchsegv cgexec choom chpst chronic chroot chrt coresched cpulimit crontab cset daemon daemonize dbus-launch dbus-run-session direnv doas dtach dumb-init eatmydata enosys entr envdir expect fakechroot fakeroot fakeroot-sysv fakeroot-tcp faketime firejail flock gchroot genv gnice gnohup gosu gstdbuf gtimeout gxargs hyperfine i386 ip linux32 linux64 loginctl logsave ltrace machinectl mise mispipe multitime newgrp nodemon nsenter numactl parallel perf pexec pipesz pkexec prlimit proot prove proxychains proxychains4 rlwrap run-one run-parts runcon runsv runuser s6-setsid schedtool screen script scriptlive sem setarch setlock setpgid setpriv setuidgid sg softlimit ssh-agent start-stop-daemon strace su su-exec systemd-cat systemd-inhibit systemd-nspawn systemd-run taskset tini tmate tmux toolbox torify torsocks trickle uclampset uname26 unbuffer unshare valgrind watch watchexec x-terminal-emulator x86_64 xterm xvfb-run zellij",
  "interpreters, and programs with a language that can run commands":
    "bpython bun byebug clisp clojure cobc cscript csi dc deno ecl ed elixir emacs emacsclient erl ex gdb gforth ghc ghci gimp ginsh gnuplot groff groovy gs guile iex ipython ipython3 irb jexec jjs jrunscript jshell julia kotlin kotlinc lldb lua lua5.1 lua5.3 lua5.4 luajit m4 maxima mono nano nroff nvim ocaml octave osascript pdb php-cgi pico prename pry psysh r racket rename rscript rview rvim sbcl scala scilab slsh sqlite sqlite3 swift swipl tclsh troff vi view vim vimdiff vimtutor wish wscript xdotool zathura",
  "programs with an escape to a shell, or that start a pager or an editor":
    "apropos aptitude bat batcat bconsole crash editor ftp fzf gtester hping3 iftop info joe journalctl less links lynx mail mailx man mariadb mc mcedit minicom more mosh most mtr mutt mysql ncdu ncftp neofetch nethogs nmap pager pg psql pydoc pydoc3 ranger redis-cli rlogin rnano rsh sensible-browser sensible-editor sensible-pager sftp slrn sqlmap ssh sshpass systemctl task tasksh telnet tig timedatectl top vifm vipw visudo w3m whiptail zsoelim",
  "programs that run what an option, a configuration or a package says":
    "ab aider ansible ansible-playbook ansible-test ant apt apt-get aria2c asdf aws bazel bmake bpftrace bundle bundler bunx busctl c89 c99 cabal certbot check_by_ssh check_cups check_log claude codex composer concurrently conda cowsay cowthink cpan cpanm cpio cross-env ctest cupsfilter debuild distcc dmesg dmsetup dnf dnsmasq dotenv dotnet dpkg dpkg-architecture dstat dvips easy_install eb env-cmd exiftool facter fnm fping gcloud gem gemini genie genisoimage gmake gradle gradlew grc gtar hashcat hatch helm home-manager husky ispell java javac jruby just knife latex latexmk lefthook lerna lint-staged lualatex luatex lwp-download mamba meson micromamba mkpasswd msgfilter mvn mvnd mvnw nasm nginx ninja nix nix-build nix-shell nixos-rebuild nox npm-run-all npx nvm nx opam opencode openvpn openvt pandoc pdflatex pdftex pdm perlbug pic pipenv pipx pkg pnpx pre-commit puppet pyenv qmake rake rbenv restic rpm rpmbuild rpmdb rpmquery rpmverify run-mailcap runscript rustup sbt scons service smbclient snap socat sphinx-build tdbtool terraform tex texi2dvi tox tshark turbo update-alternatives uucp uvx vagrant varnishncsa volatility volta xdg-open xdg-user-dir xelatex xetex xmake xpad yum yumdownloader zypper",
};

const RUNNERS: ReadonlySet<string> = new Set(Object.values(BY_KIND).flatMap((names) => names.split(" ")));

/** Loader of Linux, which runs any program. */
const LOADER = /^ld(?:-linux.*|-musl.*)?\.so|^ld-linux|^ld-musl/;

/** Version in the name of a program: `python3.12`, `gcc-13`. */
const VERSION = /(?<=[a-z+])-?\d+(?:\.\d+)*$/;

/**
 * Build in the name of a program: `vim.tiny`, `perl5.36-x86_64-linux-gnu`, `docker-compose`. Assumed to do everything the
 * program can.
 */
const BUILD = /(?<=^[a-z]+)\d*[.-].*$/;

/** Prefix of compilers for another machine: `x86_64-linux-gnu-gcc`. */
const CROSS = /^[\w-]+-(?=(?:gcc|g\+\+|c\+\+|cc|cpp|clang|clang\+\+|ld|as|gdb)(?:-\d+)?$)/;

export function isRunner(name: string): boolean {
  if (RUNNERS.has(name) || RUNNERS.has(name.replace(VERSION, "")) || LOADER.test(name)) return true;
  const kin = CROSS.test(name) ? name.replace(CROSS, "").replace(VERSION, "") : name.replace(BUILD, "");
  return kin !== name && (RUNNERS.has(kin) || PLAIN_FORMS.has(kin));
}

/** False if the call could run another program. `undefined` if no form of the program is known. */
export function hasPlainForm(name: string, args: ShellCommand): boolean | undefined {
  return (PLAIN_FORMS.get(name) ?? PLAIN_FORMS.get(name.replace(VERSION, "")))?.(args);
}
