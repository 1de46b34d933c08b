export LC_ALL
IFS= read -r left || exit 90
while [ "$left" -gt 0 ]; do
  left=$((left - 1))
  take
  p=$it
  if ! [ -f "$p" ]; then fail ': Invalid argument'; continue; fi
  m=$({ : <"$p"; } 2>&1) || { fail "$m"; continue; }
  n=$(($(wc -c <"$p")))
  if [ "$n" -gt 1048576 ] && [ "$(($(head -c 65536 "$p" | tr -d '\000' | wc -c)))" -lt 65536 ]; then
    case $(head -c 2 "$p" | od -An -tx1) in
    *'ff fe'* | *'fe ff'*) ;;
    *) n=65536 ;;
    esac
  fi
  printf 'f %s\n' "$n"
  head -c "$n" "$p"
done
