export LC_ALL
take
p=$it
IFS= read -r want || exit 90
IFS= read -r size || exit 90
folder=${p%/*}
[ -n "$folder" ] || folder=/
t=
trap '[ -z "$t" ] || rm -f -- "$t"' EXIT
trap 'exit 92' HUP INT TERM PIPE
if [ -d "$p" ]; then fail ': Is a directory'; exit 0; fi
in_place=
if [ -e "$p" ]; then
  if ! [ -f "$p" ]; then printf 'n\n'; exit 0; fi
  if ! [ -w "$p" ]; then fail ': Permission denied'; exit 0; fi
  links=$(ls -ld -- "$p")
  links=${links#* }
  while [ "${links# }" != "$links" ]; do links=${links# }; done
  links=${links%% *}
  if [ "$links" -gt 1 ] || ! { [ -O "$p" ] || [ "$(id -u)" -eq 0 ]; }; then in_place=1; fi
elif [ "$want" != - ]; then
  printf 'c\n'
  exit 0
fi
if [ -z "$in_place" ]; then
  if t=$(mktemp "$folder/.agentd-XXXXXXXX" 2>&1 && printf x); then
    t=${t%"${nl}x"}
  else
    m=$t
    t=
    case $m in
    *'Permission denied'* | *'Read-only'* | *'not permitted'*) [ -e "$p" ] || { fail "$m"; exit 0; }; in_place=1 ;;
    *) fail "$m"; exit 0 ;;
    esac
  fi
fi
if [ -n "$in_place" ]; then
  t=$(mktemp 2>&1 && printf x) || { m=$t; t=; fail "$m"; exit 0; }
  t=${t%"${nl}x"}
elif [ -e "$p" ]; then
  m=$(cp -p -- "$p" "$t" 2>&1) || { fail "$m"; exit 0; }
else
  chmod "$(printf '%o' $((0666 & ~$(umask))))" "$t"
fi
m=$(cat 2>&1 >"$t") || { fail "$m"; exit 0; }
[ "$(($(wc -c <"$t")))" -eq "$size" ] || exit 91
if [ "$want" != - ]; then
  command -v sha256sum >/dev/null 2>&1 || { fail 'sha256sum is missing there, and edit needs it'; exit 0; }
  have=$(sha256sum <"$p" 2>/dev/null)
  if [ "${have%% *}" != "$want" ]; then printf 'c\n'; exit 0; fi
fi
if [ -n "$in_place" ]; then
  m=$(cat "$t" 2>&1 >"$p") || { printf 't\n'; exit 0; }
else
  m=$(mv -f -- "$t" "$p" 2>&1) || { fail "$m"; exit 0; }
  t=
fi
printf 'k\n'
