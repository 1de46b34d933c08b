#!/bin/sh
# Installs agentd and agentctl for one user. See --help.
set -eu

usage() {
  cat <<'USAGE'
Installs agentd and agentctl, their manual pages and shell completions into ~/.local, without root.

  install.sh ARCHIVE              a file agentd-VERSION-TARGET.tar.gz, or its URL
  install.sh                      in an unpacked archive: what lies beside this script
  install.sh --uninstall          removes what this script installed; sessions and settings stay

  --prefix DIR                    another place than ~/.local
  --sha256 HEX                    the checksum of the archive; without it, SHA256SUMS beside the archive has it

A newer version replaces an older one; programs that run go on until they end.
USAGE
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

prefix='' archive='' expected='' uninstall=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --prefix | --sha256)
      [ $# -gt 1 ] || fail "$1 needs a value"
      case $1 in --prefix) prefix=$2 ;; --sha256) expected=$2 ;; esac
      shift ;;
    --uninstall) uninstall=yes ;;
    -*) fail "unknown option $1; --help lists them" ;;
    *) [ -z "$archive" ] || fail "one archive at a time"; archive=$1 ;;
  esac
  shift
done
if [ -z "$prefix" ]; then
  [ -n "${HOME-}" ] || fail "HOME is not set: say where with --prefix DIR"
  prefix=$HOME/.local
fi
case $prefix in
  /*) ;;
  *) prefix=$(pwd)/$prefix ;;
esac
# The files that were installed, a line each, relative to the prefix.
list=share/agentd/installed-files

# remove_listed LIST KEPT: removes the files of a list that are not in the file KEPT, and folders that are empty then.
remove_listed() {
  while IFS= read -r file; do
    case $file in
      bin/?* | share/?*) ;;
      *) fail "$1 is damaged: $file" ;;
    esac
    case /$file/ in */../*) fail "$1 is damaged: $file" ;; esac
    if grep -Fxq -- "$file" "$2"; then continue; fi
    rm -f -- "$prefix/$file"
    folder=$(dirname -- "$file")
    # Folders that others use are not empty, and stay.
    while [ "$folder" != . ] && rmdir -- "$prefix/$folder" 2>/dev/null; do
      folder=$(dirname -- "$folder")
    done
  done < "$1"
}

work=$(mktemp -d) || fail "no temporary folder"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

if [ -n "$uninstall" ]; then
  [ -z "$archive" ] || fail "--uninstall takes no archive"
  [ -f "$prefix/$list" ] || fail "nothing is installed in $prefix by this script"
  cp -- "$prefix/$list" "$work/list"
  echo "$list" >> "$work/list"
  : > "$work/kept"
  remove_listed "$work/list" "$work/kept"
  echo "Removed from $prefix. Sessions, settings and keys stay in ${AGENTD_DIR:-$HOME/.agentd}."
  exit 0
fi

# fetch URL FILE: downloads with curl or wget. Over plain HTTP only with a checksum that came another way, or from this machine.
fetch() {
  case $1 in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]* | http://\[::1\][:/]*) ;;
    *) [ -n "$expected" ] || fail "$1 is not HTTPS: give its checksum with --sha256 HEX" ;;
  esac
  if command -v curl > /dev/null; then
    curl --fail --silent --show-error --location --output "$2" -- "$1"
  elif command -v wget > /dev/null; then
    wget --quiet --output-document="$2" -- "$1"
  else
    fail "curl or wget is needed to download $1"
  fi
}

sha256_of() {
  if command -v sha256sum > /dev/null; then
    sha256sum < "$1"
  elif command -v shasum > /dev/null; then
    shasum -a 256 < "$1"
  else
    fail "sha256sum or shasum is needed to check the archive"
  fi | cut -d ' ' -f 1
}

if [ -n "$archive" ]; then
  name=${archive##*/}
  case $archive in
    http://* | https://*)
      fetch "$archive" "$work/archive" || fail "cannot download $archive"
      if [ -z "$expected" ]; then
        fetch "${archive%/*}/SHA256SUMS" "$work/sums" || fail "cannot download SHA256SUMS beside it; give the checksum with --sha256 HEX"
      fi ;;
    *)
      [ -f "$archive" ] || fail "there is no file $archive"
      cp -- "$archive" "$work/archive"
      if [ -z "$expected" ]; then
        sums=$(dirname -- "$archive")/SHA256SUMS
        [ -f "$sums" ] || fail "there is no SHA256SUMS beside $archive; give the checksum with --sha256 HEX"
        cp -- "$sums" "$work/sums"
      fi ;;
  esac
  if [ -z "$expected" ]; then
    expected=$(awk -v name="$name" '$2 == name || $2 == "*" name { print $1 }' "$work/sums")
    [ -n "$expected" ] || fail "SHA256SUMS has no line for $name"
  fi
  actual=$(sha256_of "$work/archive")
  [ "$actual" = "$expected" ] || fail "$name is damaged or another one: its SHA-256 is $actual, not $expected"
  mkdir "$work/tree"
  tar -xzf "$work/archive" -C "$work/tree" || fail "cannot unpack $name"
  set -- "$work/tree"/*
  tree=$1
else
  tree=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
fi
if ! [ -f "$tree/bin/agentctl" ] || ! [ -f "$tree/bin/agentd" ]; then fail "name the archive; --help says how"; fi
version=$("$tree/bin/agentctl" --version) || fail "the programs do not run on this machine ($(uname -sm)): is the archive for another one?"

(cd "$tree" && find bin share -type f) | LC_ALL=C sort > "$work/list"
while IFS= read -r file; do
  to=$prefix/$file
  mkdir -p -- "$(dirname -- "$to")"
  # Renamed into place: a program that runs keeps its file.
  cp -- "$tree/$file" "$to.new"
  case $file in
    bin/*) chmod 755 -- "$to.new" ;;
    *) chmod 644 -- "$to.new" ;;
  esac
  mv -f -- "$to.new" "$to"
done < "$work/list"
if [ -f "$prefix/$list" ]; then
  remove_listed "$prefix/$list" "$work/list"
  echo "A daemon that runs is still the version before: \`agentctl down\` ends it, and the next client starts the new one."
fi
mkdir -p -- "$(dirname -- "$prefix/$list")"
cp -- "$work/list" "$prefix/$list"

echo "Installed $version in $prefix/bin."
case ":${PATH-}:" in
  *":$prefix/bin:"*)
    found=$(command -v agentctl || true)
    [ "$found" = "$prefix/bin/agentctl" ] || echo "Note: another agentctl comes first on PATH: $found" ;;
  *)
    echo "It is not on PATH. Add this line to your shell's start file:"
    case ${SHELL-} in
      */fish) echo "  fish_add_path \"$prefix/bin\"        in ~/.config/fish/config.fish" ;;
      */zsh) echo "  export PATH=\"$prefix/bin:\$PATH\"    in ~/.zshrc" ;;
      *) echo "  export PATH=\"$prefix/bin:\$PATH\"    in ~/.profile" ;;
    esac ;;
esac
echo "Try it: agentctl prompt --demo \"What is in this folder?\""
