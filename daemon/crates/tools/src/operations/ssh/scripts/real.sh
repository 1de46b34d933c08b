export LC_ALL
take
p=$it
m=$(ls -Ld -- "$p" 2>&1 >/dev/null) || case $m in
*'No such file'*) ;;
*) fail "$m"; exit 0 ;;
esac
if r=$(readlink -m -- "$p" 2>/dev/null && printf x); then
  r=${r%"${nl}x"}
else
  rest=
  until r=$(readlink -f -- "$p" 2>/dev/null && printf x); do
    [ "$p" != / ] || { fail 'readlink -f does not work there'; exit 0; }
    rest=/${p##*/}$rest
    p=${p%/*}
    [ -n "$p" ] || p=/
  done
  r=${r%"${nl}x"}
  r=${r%/}$rest
fi
printf 'k\n%s\0' "$r"
