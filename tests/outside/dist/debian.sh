# The Debian package, in a root folder of its own. Sourced by run.

check_debian() {
  part "Debian package"
  local root=$work/root file
  file=$(echo "$out"/agentd_*.deb)
  if can lintian lintian; then
    lintian --allow-root --fail-on error,warning "$file" || fail "lintian"
    ok "lintian finds nothing"
  fi
  if [ "$(id -u)" -ne 0 ]; then
    dpkg-deb --extract "$file" "$root"
    answers "$work/home-debian" "$root/usr/bin:/usr/bin:/bin" "Debian package, unpacked"
    echo "SKIPPED: dpkg installs as root only"
    skipped=$((skipped + 1))
    return
  fi
  mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
  touch "$root/var/lib/dpkg/status"
  # The commands of the page with dpkg in place of apt, which would change this machine. What the package depends on is not in the folder.
  # shellcheck disable=SC2329 # called by the commands of the page
  sudo() {
    case "$1 $2" in
      "apt install") dpkg --root="$root" --force-depends --install "${@:3}" ;;
      "apt remove") dpkg --root="$root" --remove "${@:3}" ;;
      *) return 1 ;;
    esac
  }
  (cd "$out" && eval "$(install "Debian, Ubuntu")") > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "dpkg"; }
  answers "$work/home-debian" "$root/usr/bin:/usr/bin:/bin" "Debian package"
  (cd "$root" && md5sum --check --strict --quiet var/lib/dpkg/info/agentd.md5sums) || fail "md5sums"
  dpkg-deb --field "$file" Depends | grep -E '^libc6 \(>= 2\.[0-9]+\), libgcc-s1' > /dev/null || fail "Depends: $(dpkg-deb --field "$file" Depends)"
  (cd "$out" && eval "$(remove "Debian, Ubuntu")") > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "dpkg --remove"; }
  [ ! -e "$root/usr/bin/agentctl" ] || fail "the package is still there"
  ok "Debian package: installed, with sums, and removed"
}
