# Reads what the other side counts out: a line that begins with "=", or a number of bytes and then the bytes. Ends when
# less comes, since then the connection is lost.
printf '\001agentd\001\n'
was=${LC_ALL-} had=${LC_ALL+x}
LC_ALL=C
nl='
'
take() {
  IFS= read -r it || exit 90
  case $it in
  =*) it=${it#=} ;;
  *)
    n=$it
    it=$(dd bs=1 count="$n" 2>/dev/null && printf x) || exit 90
    it=${it%x}
    [ "${#it}" -eq "$n" ] || exit 90
    ;;
  esac
}
fail() {
  printf 'e %s\n' "$(printf '%s' "$1" | tr '\n' ' ')"
}
kind() {
  if [ -f "$1" ]; then k=f; elif [ -d "$1" ]; then k=d; elif [ -p "$1" ]; then k=p; elif [ -S "$1" ]; then k=s
  else k=o; fi
}
