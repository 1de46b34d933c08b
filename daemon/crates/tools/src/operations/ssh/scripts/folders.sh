export LC_ALL
take
m=$(mkdir -p -- "$it" 2>&1) || { fail "$m"; exit 0; }
printf 'k\n'
