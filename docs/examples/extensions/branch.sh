#!/bin/sh
# An extension for agentd: says on which branch the work has ended, and has the command /branch.
# The records that agentd writes begin with their number and their type; that is all that is read of them here.

answer() { # VALUE
  printf '{"type":"result","id":%s,"ok":true,"value":%s}\n' "$id" "$1"
}

register() { # FIELDS
  printf '{"type":"register","epoch":%s,"ext":"%s",%s}\n' "$epoch" "$ext" "$1"
}

notify() { # TEXT
  text=$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')
  printf '{"type":"ui","epoch":%s,"ext":"%s","method":"notify","message":"%s","notifyType":"info"}\n' "$epoch" "$ext" "$text"
}

branch() {
  git symbolic-ref --short HEAD 2>/dev/null || echo "no branch"
}

field() { # NAME: the value of the first field of that name, a number or a plain string
  value=${line#*"\"$1\":"}
  value=${value#\"}
  printf %s "${value%%[\",\}]*}"
}

while IFS= read -r line; do
  id=$(field id) type=$(field type)
  case $type in
    hello) answer '{"protocol":1}' ;;
    load)
      epoch=$(field epoch) ext=$(field ext)
      register '"kind":"handler","h":1,"event":"agent_settled"'
      register '"kind":"command","name":"branch","description":"Shows the branch"'
      answer '{"extensions":[{"ext":"'"$ext"'","ok":true}]}'
      ;;
    hook)
      notify "Finished on $(branch)"
      answer '{"returns":[{"h":1}]}'
      ;;
    command.run)
      notify "$(branch)"
      answer null
      ;;
    bind | ping | shutdown) answer null ;;
  esac
done
