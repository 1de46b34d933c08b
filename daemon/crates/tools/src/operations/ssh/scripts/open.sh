export LC_ALL
take
p=$it
IFS= read -r want || exit 90
m=$(ls -Ld -- "$p" 2>&1 >/dev/null) || { fail "$m"; exit 0; }
kind "$p"
n=0
case $want in
change)
  { [ -r "$p" ] && [ -w "$p" ]; } || { fail ': Permission denied'; exit 0; }
  ;;
*)
  if [ $k = f ]; then
    if [ "$want" = content ]; then m=$({ : <"$p"; } 2>&1) || { fail "$m"; exit 0; }; fi
    if [ -r "$p" ]; then n=$(($(wc -c <"$p"))); fi
  fi
  ;;
esac
printf '%s %s\n' $k $n
if [ "$want" = content ] && [ $k = f ]; then exec cat <"$p"; fi
