# The packages for npm, in a global prefix of their own. Sourced by run.

check_npm() {
  part "npm"
  local prefix=$work/npm bin=$work/npm/bin node signal_status
  node=$(dirname "$(command -v node)")
  mkdir -p "$prefix"
  npm_of_page() {
    in_home "$work/home-npm" "$node:$PATH" env npm_config_prefix="$prefix" npm_config_offline=true npm_config_update_notifier=false \
      npm_config_audit=false npm_config_fund=false bash -c "$1" > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "$1"; }
  }
  npm_of_page "$(install npm)"
  answers "$work/home-npm" "$bin:$node:/usr/bin:/bin" "npm, $(node --version)"
  [ -s "$prefix/share/man/man1/agentctl.1" ] || fail "npm has not installed the manual pages"
  # The launcher as it is where Node cannot replace a process.
  printf 'delete process.execve;\n' > "$work/old.cjs"
  old_node() { env -i HOME="$work/home-npm" PATH="$bin:$node:/usr/bin:/bin" TMPDIR="$TMPDIR" NODE_OPTIONS="--require=$work/old.cjs" "$@"; }
  new_node() { env -i HOME="$work/home-npm" PATH="$bin:$node:/usr/bin:/bin" TMPDIR="$TMPDIR" "$@"; }
  local way status said
  for way in new_node old_node; do
    status=0
    "$way" agentctl prompt --no-such-flag > /dev/null 2>&1 || status=$?
    [ "$status" -eq 2 ] || fail "$way: exit code $status, not 2"
    said=$(cd "$work/project" && echo "Piped in." | "$way" agentctl prompt --demo --no-session - 2> /dev/null)
    case $said in *"Piped in."*) ;; *) fail "$way: stdin did not arrive: $said" ;; esac
    # SIGTERM reaches agentd, which then ends with 143 by its own rule.
    signal_status=0
    coproc daemon { cd "$work/project" && "$way" agentd --stdio --ready --no-session --demo; }
    local to=${daemon[1]} from=${daemon[0]} pid=$daemon_PID line
    read -r line <&"$from"
    case $line in *'"ready"'*) ;; *) fail "$way: agentd began with $line" ;; esac
    kill -TERM "$(launcher_of "$pid")"
    wait "$pid" || signal_status=$?
    : "$to"
    [ "$signal_status" -eq 143 ] || fail "$way: exit code $signal_status after SIGTERM"
    ok "$way: exit code, stdin and signals pass through"
  done
  npm_of_page "$(remove npm)"
  [ ! -e "$bin/agentctl" ] || fail "npm left the command behind"

  # Without the package for the platform, the launcher says what is missing.
  (cd "$work/empty" && npm_config_offline=true npm install --no-audit --no-fund --omit=optional "$out/agentd-cli-$version.tgz" > /dev/null 2>&1) || fail "npm install --omit=optional"
  refuses "agentd-cli-linux-x64 is installed" "$work/empty/node_modules/.bin/agentctl" --version
}

# launcher_of PID: the process that the shell PID waits for, or itself where it was replaced.
launcher_of() {
  local child
  child=$(pgrep --parent "$1" | head -n 1 || true)
  echo "${child:-$1}"
}
