# The container image, built and run by buildah without a daemon and without a registry: its base is a Debian made here. Sourced by run.

check_container() {
  part "container image"
  local release base suite=debian-bookworm
  release=$(sed -n 's/^ARG BASE=debian:\(.*\)-slim$/\1/p' "$out/Containerfile")
  [ -n "$release" ] || fail "the Containerfile names no Debian"
  suite=debian-$release
  if [ "$(id -u)" -ne 0 ]; then
    echo "SKIPPED: the base of the image is made as root"
    skipped=$((skipped + 1))
    return
  fi
  if ! { can buildah buildah && can mmdebstrap mmdebstrap; }; then return; fi
  base=$packages/$suite.tar
  if [ ! -f "$base" ] && ! { mmdebstrap --quiet --variant=minbase "$release" "$base.new" && mv "$base.new" "$base"; }; then
    echo "SKIPPED: the base of the image could not be made: mmdebstrap $release"
    skipped=$((skipped + 1))
    return
  fi
  builder() { TMPDIR=$work/tmp command buildah --storage-driver vfs --root "$work/images" --runroot "$work/run" "$@"; }
  local container image=localhost/agentd-test
  container=$(builder from scratch)
  builder add --quiet "$container" "$base" / > /dev/null
  builder commit --quiet "$container" localhost/debian > /dev/null
  builder rm "$container" > /dev/null
  if ! builder bud --quiet --isolation chroot --build-arg BASE=localhost/debian --tag "$image" --file "$out/Containerfile" "$out" > "$work/said" 2>&1; then
    tail -n 30 "$work/said" >&2
    fail "the image cannot be built"
  fi
  container=$(builder from "$image")
  in_image() { builder run --isolation chroot --volume "$work/project:/project" "$container" -- "$@"; }
  [ "$(in_image id -un)" = agent ] || fail "the user of the image is $(in_image id -un)"
  in_image agentctl prompt --demo "What is in this folder?" 2> /dev/null | grep -F "a.txt" > /dev/null || fail "no answer in the container"
  in_image sh -c 'git --version && ls -ld ~/.agentd && dpkg --verify agentd' > /dev/null || fail "the image is not complete"
  [ "$(builder inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' "$image")" = "[agentctl]" ] || fail "the entry point"
  ok "the image is built, and answers a prompt as its own user"
}
