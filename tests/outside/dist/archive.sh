# The archive and its script. Sourced by run.

check_archive() {
  part "archive"
  local home=$work/home-archive bin=$work/home-archive/.local/bin file url port server
  file=$(cd "$out" && echo agentd-*.tar.gz)
  if can shellcheck shellcheck; then
    shellcheck "$out/install.sh" || fail "shellcheck"
    ok "shellcheck finds nothing in install.sh"
  fi
  in_home "$home" /usr/bin:/bin sh -c "$(install Archive)" > "$work/said"
  grep -Fq "export PATH=\"$bin:\$PATH\"" "$work/said" || fail "install.sh does not say what to add to PATH"
  answers "$home" "$bin:/usr/bin:/bin" "archive"
  for found in man/man1/agentctl-prompt.1 man/man1/agentd.1 bash-completion/completions/agentctl zsh/site-functions/_agentctl \
    fish/vendor_completions.d/agentctl.fish doc/agentd/THIRD-PARTY-LICENSES.txt doc/agentd/README.md doc/agentd/docs/install.md; do
    [ -s "$home/.local/share/$found" ] || fail "share/$found is not installed"
  done
  ok "manual pages, completions, licences and documents are installed"

  # An upgrade removes what the new version does not have, and nothing of others.
  echo mine > "$home/.local/share/man/man1/mine.1"
  echo old > "$home/.local/share/man/man1/agentctl-old.1"
  echo share/man/man1/agentctl-old.1 >> "$home/.local/share/agentd/installed-files"
  in_home "$home" "$bin:/usr/bin:/bin" sh -c "$(install Archive)" > "$work/said"
  grep -q "not on PATH" "$work/said" && fail "PATH was set"
  [ ! -e "$home/.local/share/man/man1/agentctl-old.1" ] || fail "a file of the old version is still there"
  in_home "$home" /usr/bin:/bin sh -c "$(remove Archive)" > "$work/said"
  [ "$(cd "$home/.local" && find . -type f)" = ./share/man/man1/mine.1 ] || fail "left behind: $(find "$home/.local" -type f)"
  [ ! -d "$home/.local/bin" ] || fail "an empty folder is left behind"
  ok "upgraded, and removed without a trace"
  refuses "nothing is installed" in_home "$home" /usr/bin:/bin sh install.sh --uninstall

  # Checksums.
  mkdir "$work/damaged"
  cp "$out/$file" "$out/SHA256SUMS" "$work/damaged"
  printf x >> "$work/damaged/$file"
  refuses "is damaged" in_home "$home" /usr/bin:/bin sh install.sh "$work/damaged/$file"
  rm "$work/damaged/SHA256SUMS"
  refuses "no SHA256SUMS" in_home "$home" /usr/bin:/bin sh install.sh "$work/damaged/$file"
  refuses "is damaged" in_home "$home" /usr/bin:/bin sh install.sh --sha256 00 "$work/damaged/$file"
  refuses "is not HTTPS" in_home "$home" /usr/bin:/bin sh install.sh "http://192.0.2.1/$file"
  [ ! -e "$home/.local/bin" ] || fail "something was installed after all"

  # A download, to a prefix with a space; and from inside of the unpacked archive.
  if can curl curl; then
    coproc server { exec python3 -u "$here/server.py" "$out"; }
    read -r port <&"${server[0]}"
    url=http://127.0.0.1:$port/$file
    in_home "$home" /usr/bin:/bin sh install.sh --prefix "$work/a prefix" "$url" > /dev/null
    kill "$server_PID"
    answers "$home" "$work/a prefix/bin:/usr/bin:/bin" "archive by URL"
  fi
  tar -xzf "$out/$file" -C "$work"
  in_home "$home" /usr/bin:/bin sh "$work/${file%.tar.gz}/install.sh" --prefix "$work/a prefix" > /dev/null
  in_home "$home" /usr/bin:/bin sh install.sh --uninstall --prefix "$work/a prefix" > /dev/null
  [ -z "$(find "$work/a prefix" -type f)" ] || fail "left behind in the prefix"
  ok "unpacked, installed and removed"

  # Programs for another processor: two bytes of their headers say so.
  mkdir "$work/arm64"
  for program in agentd agentctl agentd-syntax; do
    cp "$work/${file%.tar.gz}/bin/$program" "$work/arm64"
    printf '\267\000' | dd of="$work/arm64/$program" bs=1 seek=18 conv=notrunc status=none
  done
  refuses "no programs for this machine" in_repository cargo xtask dist tar --bin-dir "$work/arm64" --out "$work/two"
  in_repository cargo xtask dist npm --bin-dir "$work/arm64" --bin-dir "$work/${file%.tar.gz}/bin" --out "$work/two" > /dev/null
  [ "$(cd "$work/two" && echo *)" = "SHA256SUMS agentd-cli-$version.tgz agentd-cli-linux-arm64-$version.tgz agentd-cli-linux-x64-$version.tgz" ] ||
    fail "other packages for two processors: $(ls "$work/two")"
  tar -xzOf "$work/two/agentd-cli-linux-arm64-$version.tgz" package/package.json | tr -d ' \n' | grep -F '"cpu":["arm64"]' > /dev/null ||
    fail "the processor of the package for ARM64"
  ok "packages for two processors"
}

in_repository() { (cd "$repository" && "$@"); }
