//! The text of `agentd --help`.

/// The text of `--help`.
pub const HELP: &str = "\
agentd - the coding-agent daemon: sessions, tools and models behind JSON Lines

Usage: agentd [serve] [--socket <path>] [--compat pi]     many sessions and clients, on a local socket
       agentd --stdio [flags]                             one session on stdin and stdout (--mode rpc is the same)
       agentd --stdio --shared [flags]                    the same, with a session of the daemon, which others can join
       agentd acp [--shared] [flags]                      the sessions of an editor, by the Agent Client Protocol (docs/editors.md)
       agentd acp login                                   logs in at this terminal, as editors let their users do (agentctl login)
       agentd mcp serve [--shared] [flags]                an MCP server: other agents hand work to sessions (docs/mcp-server.md)
       agentd -p [flags] [@file...] [message...]          answers the messages, and ends (--mode text is the same)
       agentd --mode json [flags] [@file...] [message...] the same, showing the session's events

Clients write one JSON command per line, and read responses and events, one per line. `agentctl up` starts the daemon in
the background; `agentctl prompt \"...\"` has a prompt answered there.

Way of working
      --stdio, --mode rpc       serve one session on stdin and stdout
      --mode acp                the same as acp: serve an editor on stdin and stdout
  -p, --print, --mode text      print the text of the last answer; what is piped in and @files come before the first message,
                                each further message is a prompt of its own
      --mode json               print the session's header and its events as JSON Lines

Session
  -c, --continue                the most recent session of this folder, or a new one
      --prefer <id>             with -c: this session, if it is one of this folder
      --session <path|id>       a session file, or the id (or its beginning) of a session
      --session-id <id>         exactly this id; a new session gets it
      --fork <path|id>          a copy of that session, in this folder; --session-id gives it an id
      --session-dir <dir>       the folder of session files
      --no-session              keep the session in memory only
  -n, --name <name>             name the session
      --export <in> [out]       write a session file as an HTML page, and end; - is stdin or stdout
Model
      --model <pattern>         id, part of an id or name, or provider/id; with an optional :<thinking>
      --provider <name>         the provider that --model is looked up in
      --demo                    the built-in demo model, which needs no key: --model demo/demo
      --models <a,b>            the models that cycle_model goes through
      --fallback-models <a,b>   the models that are asked when the chosen one fails for good
      --thinking <level>        off, minimal, low, medium, high, xhigh, max
      --api-key <key>           the key for the chosen model's provider
      --list-models [search]    print the models that can be used, and end
Prompt and tools
      --system-prompt <text|file>          in the place of the built-in prompt
      --append-system-prompt <text|file>   after the prompt; repeatable
  -t, --tools <list>            only these tools, or changes of the default (+name, -name)
 -xt, --exclude-tools <list>    without these tools
 -nt, --no-tools                no tools but those that -t names
-nbt, --no-builtin-tools        the same, but clients may provide tools
      --syntax                  with the tools ast_grep and ast_edit, unless the setting syntax.enabled says no
      --todo                    with the tool todo, unless the setting todo.enabled says no (docs/tools.md)
      --task                    with the tool task, unless the setting task.enabled says no (docs/subagents.md)
      --async                   commands can be jobs, unless the setting async.enabled says no (docs/jobs.md)
      --lsp                     with language servers, unless the setting lsp.enabled says no (docs/language-servers.md)
      --web                     with the tools of the web, unless the setting web.enabled says no (docs/web.md)
      --plan-mode               the model changes nothing before you have approved its plan (docs/plan-mode.md)
      --ssh <host[:dir]>        tools and commands work on another host, in its home or in dir (docs/tools.md)
 -nc, --no-context-files        do not read AGENTS.md and CLAUDE.md files
      --no-mcp                  no MCP servers (docs/mcp.md)
      --mcp-on-demand           connect MCP servers when something of them is asked for, and no sooner
      --no-ui                   nobody is asked anything: dialogs take their defaults, and nothing of extensions is shown
      --skill <path>            a skill, or a folder of skills; repeatable
 -ns, --no-skills               no skills but those of --skill
      --prompt-template <path>  a prompt template, or a folder of them; repeatable
 -np, --no-prompt-templates     no prompt templates but those of --prompt-template
  -e, --extension <source>      a package for this session: npm:NAME, git:HOST/PATH, a URL or a path; repeatable (docs/packages.md)
 -ne, --no-extensions           no extensions but those of --extension
  -a, --approve / -na, --no-approve    trust, or do not trust, the project's own settings
Guard rails (docs/budgets.md); of a flag and the setting budgets.run the lower limit counts, and what reaches it ends with exit code 5
      --permissions <preset>    what tools may do where no rule says so: read-only, ask, workspace, full (docs/permissions.md)
      --sandbox <mode>          what commands and file tools may write: off, workspace-write, read-only (docs/sandbox.md)
      --network <on|off>        whether commands in the sandbox may use the network
      --writable-root <dir>     a folder that may be written in the sandbox, too; repeatable
      --undo <on|off>           keep what tool calls change, so that it can be undone (agentctl undo)
      --permission-rules <file>  a file of rules besides those of the settings
      --max-cost <usd>          what the model calls of a run may cost, such as 0.50
      --max-tokens <n>          the tokens of a run's model calls, input and output
      --max-turns <n>           the answers of a run
      --max-tool-calls <n>      the tool calls of a run
      --timeout <time>          how long a run may take, such as 90s, 10m or 1h30m
Daemon
      --socket <path>           listen here (default: AGENTD_SOCKET, else a place that belongs to the agent directory)
      --on-eof abort|drain      what the end of stdin means for unfinished work: it is stopped, or finished first
                                (default: abort; with --shared: the session goes on, or is waited for with drain)
      --ready                   the first line on stdout is a ready event, as client libraries of omp expect (docs/clients.md)
      --cumulative-updates      each message_update carries the answer so far, and there are no system messages: for
                                clients of pi before 0.84
      --shared                  a session of the daemon on the socket, which is started if none runs
      --compat pi               directories and version of pi come first, and messages or session flags mean -p;
                                so it is under the name `pi`
      --record <dir>            write the exchanges with providers to files in dir, without secrets (docs/recording.md)
      --replay <dir|file>       take models' answers from recordings: no provider is asked, no key is needed; tools run
      --replay-match body|order what has to be as it was recorded of a request (default: body), or its place alone
      --replay-timing           replayed answers take their time
  -v, --version                 print the version
  -h, --help                    print this
--on-eof and --ready are for --stdio, --shared for --stdio, acp and mcp serve, --cumulative-updates for --stdio and --mode json, and so are the flags above
Daemon, which -p takes too.

Accepted for clients of pi and omp, without effect: --theme <path>, --use-theme <name>, --tui-mode <mode>, --no-themes,
--no-title, --verbose; --offline sets PI_OFFLINE=1 for what tools start, and no missing packages are installed.

Environment: AGENTD_DIR (default ~/.agentd) holds settings.json, models.json, auth.json and sessions/;
PI_CODING_AGENT_DIR and PI_CODING_AGENT_SESSION_DIR are honoured; AGENTD_LOG sets what is logged to stderr.

Exit codes: 0 the end as it should be; 1 it could not start or write, or -p has no whole answer; 3 --shared: the daemon cannot be reached or
started, or was lost on the way; 4 a daemon is running at that socket already; 5 a budget ended the run of -p or --mode json;
6 a call of it was denied;
129, 143 --stdio, -p or --mode json was ended by SIGHUP, SIGTERM (130 by SIGINT; --stdio alone leaves that to its host). The daemon on a socket finishes its work after SIGTERM, SIGINT or SIGHUP,
30 s at most, and ends with 0; a second signal ends it at once, with 128 and the signal's number.
";
