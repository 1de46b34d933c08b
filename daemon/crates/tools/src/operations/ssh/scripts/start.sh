export LC_ALL
take
unset CDPATH
if [ -n "$it" ]; then
  m=$(ls -Ld -- "$it/." 2>&1 >/dev/null) || { fail "$m"; exit 0; }
  cd -P -- "$it" 2>/dev/null || { fail ': Permission denied'; exit 0; }
else
  cd -P -- "$HOME" 2>/dev/null || { fail "its home directory $HOME cannot be entered"; exit 0; }
fi
printf 'k\n%s\0%s\0' "$PWD" "$HOME"
