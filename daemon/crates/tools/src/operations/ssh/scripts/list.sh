export LC_ALL
IFS= read -r left || exit 90
if find / -maxdepth 0 -printf '' >/dev/null 2>&1; then gnu=1; else gnu=; fi
show() {
  case ${1##*/} in . | ..) return ;; esac
  if [ -e "$1" ]; then kind "$1"; else k=N; fi
  if [ -L "$1" ]; then own=l; elif [ $k = N ]; then return; else own=$k; fi
  printf '%s%s%s\0' $own $k "${1##*/}"
}
while [ "$left" -gt 0 ]; do
  left=$((left - 1))
  take
  p=${it%/}
  m=$(ls -Ld -- "$p/" 2>&1 >/dev/null) || { fail "$m"; continue; }
  { [ -r "$p/" ] && [ -x "$p/" ]; } || { fail ': Permission denied'; continue; }
  printf 'k\n'
  if [ -n "$gnu" ]; then
    find "$p/" -mindepth 1 -maxdepth 1 -printf '%y%Y%f\0' 2>/dev/null
  else
    for name in "$p"/* "$p"/.*; do show "$name"; done
  fi
  printf '\0'
done
