# The wheel, in a virtual environment. Sourced by run.

check_python() {
  part "wheel"
  local wheel venv=$work/venv
  wheel=$(echo "$out"/*.whl)
  "$packages/dist/bin/auditwheel" show "$wheel" > "$work/said" 2>&1
  tr '\n' ' ' < "$work/said" | grep -F "is consistent with the following platform tag: \"$(basename "$wheel" .whl | sed 's/.*none-//')\"" > /dev/null ||
    { cat "$work/said" >&2; fail "auditwheel gives it another tag"; }
  ok "auditwheel gives it the same tag"
  python3 -m venv "$venv"
  # pip checks each file against RECORD only where one is missing there, so that all are checked here.
  python3 "$here/wheel_record.py" "$wheel" || fail "RECORD"
  ok "RECORD is complete and true"
  in_home "$work/home-python" "$venv/bin:/usr/bin:/bin" env PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 bash -c "$(install pip)" > "$work/said" 2>&1 ||
    { cat "$work/said" >&2; fail "pip install"; }
  answers "$work/home-python" "$venv/bin:/usr/bin:/bin" "wheel"
  [ -s "$venv/share/man/man1/agentctl.1" ] || fail "pip has not installed the manual pages"
  "$venv/bin/pip" --disable-pip-version-check check > /dev/null || fail "pip check"
  "$venv/bin/pip" --disable-pip-version-check show agentd-cli 2> /dev/null | grep -Fx "Version: $version" > /dev/null || fail "pip show"
  in_home "$work/home-python" "$venv/bin:/usr/bin:/bin" bash -c "$(remove pip)" > "$work/said" 2>&1 || { cat "$work/said" >&2; fail "pip uninstall"; }
  [ ! -e "$venv/bin/agentctl" ] || fail "pip left the program behind"
  ok "wheel: installed and removed"
}
