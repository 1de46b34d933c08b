take
folder=$it
take
command=$it
IFS= read -r left || exit 90
if [ -n "$had" ]; then LC_ALL=$was; else unset LC_ALL; fi
keep() { LC_ALL=C; take; if [ -n "$had" ]; then LC_ALL=$was; else unset LC_ALL; fi; }
while [ "$left" -gt 0 ]; do
  left=$((left - 1))
  keep
  export "$it"
done
unset CDPATH
cd -- "$folder" 2>/dev/null || { printf 'agentd folder\n' >&2; exit 0; }
exec 4<&0 5>&2 </dev/null 2>/dev/null
if command -v setsid >/dev/null; then
  setsid "$BASH" -c "$command" 2>&1 4<&- 5>&- &
  child=$!
else
  set -m
  "$BASH" -c "$command" 2>&1 4<&- 5>&- &
  child=$!
  set +m
fi
members() {
  for stat in /proc/[0-9]*/stat; do
    IFS= read -r line <"$stat" || continue
    pid=${stat#/proc/}
    pid=${pid%/stat}
    set -- ${line##*) }
    case $1 in Z | X) continue ;; esac
    if [ "$4" = "$child" ]; then printf '%s ' "$pid"; fi
  done
}
(
  exec >/dev/null 5>&-
  while IFS= read -r -n 1 -u 4 _; do :; done
  kill -KILL -- "-$child"
  for round in 1 2 3 4 5 6 7 8 9 10; do
    pids=$(members)
    [ -n "$pids" ] || break
    kill -KILL $pids
  done
) &
watcher=$!
exec >/dev/null 4<&-
wait "$child"
printf 'agentd exit %s\n' "$?" >&5
exec 5>&-
if [ -n "$(members)" ]; then wait "$watcher"; fi
kill -KILL "$watcher"
