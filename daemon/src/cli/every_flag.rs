//! Tests of every flag: its effect on the options, and the error where it cannot be used.

use std::collections::BTreeSet;

use agentd_protocol::{
    model::ThinkingLevel,
    settings::{NetworkAccess, PermissionPreset, SandboxMode},
};
use agentd_session::{InitialMode, Target};

use super::{flag_table::names, *};
use crate::record_replay;

fn parse_as(program: &str, args: &[&str]) -> Result<Invocation, String> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    parse(program, &args, Path::new("/p"), [("HOME", "/h")].into_iter().collect())
}

fn stdio(args: &[&str]) -> StdioOptions {
    let args = [&["--stdio"], args].concat();
    match parse_as("agentd", &args) {
        Ok(Invocation::Stdio(options)) => *options,
        other => panic!("{args:?}: {other:?}"),
    }
}

fn one_shot(program: &str, args: &[&str]) -> OneShotOptions {
    match parse_as(program, args) {
        Ok(Invocation::OneShot(options)) => *options,
        other => panic!("{program} {args:?}: {other:?}"),
    }
}

/// Arguments, and a check that the options show their effect.
type EffectRow = (&'static [&'static str], fn(&StdioOptions) -> bool);

/// Flags of a session with an effect of their own.
const EFFECTS: &[EffectRow] = &[
    (&["--continue"], |it| it.session.target == Target::Continue),
    (&["-c"], |it| it.session.target == Target::Continue),
    (&["--session", "x"], |it| it.session.target == Target::Existing("x".into())),
    (&["--session", "x", "--continue"], |it| it.session.target == Target::Existing("x".into())),
    (&["--session-id", "i"], |it| it.session.target == Target::Id("i".into())),
    (&["--continue", "--prefer", "i"], |it| it.session.preferred.as_deref() == Some("i")),
    (&["--session-dir", "d"], |it| it.session.session_dir.as_deref() == Some(Path::new("d"))),
    (&["--fork", "x"], |it| it.session.target == Target::Fork { source: "x".into(), id: None }),
    (&["--fork", "x", "--session-id", "i"], |it| {
        it.session.target == Target::Fork { source: "x".into(), id: Some("i".into()) }
    }),
    (&["--no-session"], |it| it.session.target == Target::Ephemeral(None)),
    (&["--no-session", "--session-id", "i"], |it| it.session.target == Target::Ephemeral(Some("i".into()))),
    (&["--name", "n"], |it| it.session.name.as_deref() == Some("n")),
    (&["-n", "n"], |it| it.session.name.as_deref() == Some("n")),
    (&["--model", "a", "--model", "b"], |it| it.session.model.as_deref() == Some("b")),
    (&["--model=b"], |it| it.session.model.as_deref() == Some("b")),
    (&["--provider", "p", "--model", "m"], |it| it.session.provider.as_deref() == Some("p")),
    (&["--demo"], |it| it.session.model.as_deref() == Some("demo/demo")),
    (&["--models", "a, b:high"], |it| it.session.models == Some(vec!["a".into(), "b:high".into()])),
    (&["--fallback-models", "a, b:high"], |it| {
        it.session.fallback_models == Some(vec!["a".into(), "b:high".into()])
    }),
    (&["--api-key", "k", "--models", "a"], |it| it.session.api_key.is_some()),
    (&["--permissions", "workspace"], |it| {
        it.session.permissions.preset == Some(PermissionPreset::Workspace)
    }),
    (&["--max-cost", "0.50"], |it| it.session.budget.cost_usd == Some(0.5)),
    (&["--max-tokens", "9"], |it| it.session.budget.tokens == Some(9)),
    (&["--max-turns", "9"], |it| it.session.budget.turns == Some(9)),
    (&["--max-tool-calls", "9"], |it| it.session.budget.tool_calls == Some(9)),
    (&["--timeout", "1h30m"], |it| it.session.budget.seconds == Some(5400)),
    (&["--thinking", "max"], |it| it.session.thinking == Some(ThinkingLevel::Max)),
    (&["--thinking", "lots"], |it| it.session.thinking.is_none() && it.warnings[0].contains("\"lots\"")),
    (&["--system-prompt", "s"], |it| it.session.system_prompt.as_deref() == Some("s")),
    (&["--append-system-prompt", "a", "--append-system-prompt", "b"], |it| {
        it.session.append_system_prompt == ["a", "b"]
    }),
    (&["--tools", "+grep,-bash"], |it| it.session.tools.allow == Some(vec!["+grep".into(), "-bash".into()])),
    (&["-t", "-bash"], |it| it.session.tools.allow == Some(vec!["-bash".into()])),
    (&["--exclude-tools", "bash"], |it| it.session.tools.exclude == ["bash"]),
    (&["-xt", "bash"], |it| it.session.tools.exclude == ["bash"]),
    (&["--no-tools"], |it| it.session.tools.none),
    (&["-nt"], |it| it.session.tools.none),
    (&["--no-builtin-tools"], |it| it.session.tools.none),
    (&["-nbt"], |it| it.session.tools.none),
    (&["--todo"], |it| it.session.todo),
    (&["--syntax"], |it| it.session.syntax),
    (&["--task"], |it| it.session.task),
    (&["--async"], |it| it.session.async_jobs),
    (&["--lsp"], |it| it.session.lsp),
    (&["--web"], |it| it.session.web),
    (&["--plan-mode"], |it| it.session.initial_mode == InitialMode::Plan),
    (&["--ssh", "box:src"], |it| it.session.ssh == "box:src".parse().ok()),
    (&["--no-context-files"], |it| it.session.no_context_files),
    (&["-nc"], |it| it.session.no_context_files),
    (&["--no-mcp"], |it| it.session.no_mcp),
    (&["--mcp-on-demand"], |it| it.session.mcp_on_demand),
    (&["--no-ui"], |it| !it.session.mode.has_ui()),
    (&["--skill", "a", "--skill", "b"], |it| it.session.resources.skills == ["a", "b"]),
    (&["--no-skills"], |it| it.session.resources.no_skills),
    (&["-ns"], |it| it.session.resources.no_skills),
    (&["--prompt-template", "a"], |it| it.session.resources.prompts == ["a"]),
    (&["--no-prompt-templates"], |it| it.session.resources.no_prompts),
    (&["-np"], |it| it.session.resources.no_prompts),
    (&["--sandbox", "workspace-write"], |it| it.session.sandbox.mode == Some(SandboxMode::WorkspaceWrite)),
    (&["--network", "off"], |it| it.session.sandbox.network == Some(NetworkAccess::Off)),
    (&["--writable-root", "/a"], |it| it.session.sandbox.writable_roots == ["/a"]),
    (&["--undo", "on"], |it| it.session.undo == Some(true)),
    (&["--undo", "off"], |it| it.session.undo == Some(false)),
    (&["--approve"], |it| it.session.approve == Some(true)),
    (&["-a"], |it| it.session.approve == Some(true)),
    (&["--no-approve"], |it| it.session.approve == Some(false)),
    (&["-na"], |it| it.session.approve == Some(false)),
    (&["--extension", "e", "--extension", "npm:f"], |it| it.session.resources.extensions == ["e", "npm:f"]),
    (&["-e", "e"], |it| it.session.resources.extensions == ["e"]),
    (&["--no-extensions"], |it| it.session.resources.no_extensions),
    (&["-ne"], |it| it.session.resources.no_extensions),
    (&["--offline"], |it| it.session.environment.get("PI_OFFLINE") == Some("1")),
    (&["--on-eof", "drain"], |it| it.on_eof == OnEof::Drain),
    (&["--ready"], |it| it.ready),
    (&["--cumulative-updates"], |it| it.cumulative),
    (&["--record", "r"], |it| it.session.environment.get(record_replay::RECORD) == Some("r")),
    (&["--replay", "r"], |it| it.session.environment.get(record_replay::REPLAY) == Some("r")),
    (&["--replay-match", "order"], |it| {
        it.session.environment.get(record_replay::REPLAY_MATCH) == Some("order")
    }),
    (&["--replay-timing"], |it| it.session.environment.get(record_replay::REPLAY_TIMING) == Some("1")),
    (&["--compat", "pi"], |it| it.session.compat),
    (&["--mode", "rpc"], |it| it.warnings.is_empty()),
    (&["-p"], |it| it.warnings.is_empty()),
    (&["--print"], |it| it.warnings.is_empty()),
];

/// Flags for parts of pi that agentd does not have: accepted without effect.
const WITHOUT_EFFECT: &[&[&str]] = &[
    &["--theme", "dark"],
    &["--no-themes"],
    &["--no-title"],
    &["--use-theme", "dark"],
    &["--tui-mode", "full"],
    &["--verbose"],
];

/// Flags with tests of their own: other modes of work, and refused flags.
const ELSEWHERE: &[&str] = &[
    "--stdio",
    "--shared",
    "--socket",
    "--detached",
    "--help",
    "-h",
    "--version",
    "-v",
    "--list-models",
    "--resume",
    "-r",
    "--export",
    "--bug-report",
    "--fsck",
    "--policy-check",
    "--mcp-edit",
    "--packages",
    "--usage",
    "--permission-rules",
];

/// Flags that the help leaves out: other programs pass them.
const UNDOCUMENTED: &[&str] = &[
    "--resume",
    "-r",
    "--detached",
    "--bug-report",
    "--fsck",
    "--policy-check",
    "--mcp-edit",
    "--packages",
    "--usage",
];

#[test]
fn flags_have_their_effect() {
    for (args, shows) in EFFECTS {
        assert!(shows(&stdio(args)), "{args:?}");
    }
    let plain = format!("{:?}", stdio(&[]));
    for args in WITHOUT_EFFECT {
        assert_eq!(format!("{:?}", stdio(args)), plain, "{args:?}");
    }
}

#[test]
fn no_flag_is_left_out() {
    let tested = EFFECTS.iter().map(|(args, _)| *args).chain(WITHOUT_EFFECT.iter().copied()).flatten();
    let tested = tested.filter_map(|arg| arg.starts_with('-').then(|| arg.split('=').next()).flatten());
    let tested: BTreeSet<&str> =
        tested.chain(ELSEWHERE.iter().copied()).filter(|arg| *arg != "-bash").collect();
    assert_eq!(tested, names().collect());
    for name in names().filter(|name| !ELSEWHERE.contains(name)) {
        let known =
            !parse_as("agentd", &["--stdio", name, "x"]).is_err_and(|error| error.contains("Unknown option"));
        assert!(known, "{name} is a name that is not read");
    }
}

#[test]
fn the_help_has_them_all() {
    for name in names() {
        let stands =
            HELP.split(|next: char| !(next.is_alphanumeric() || next == '-')).any(|word| word == name);
        assert!(stands || UNDOCUMENTED.contains(&name), "{name} is not in --help");
    }
}

#[test]
fn mistakes_have_their_texts() {
    let check = |args: &[&str], text: &str| {
        let error = parse_as("agentd", &[&["--stdio"], args].concat()).unwrap_err();
        assert!(error.starts_with(&format!("Error: {text}")), "{args:?}: {error}");
    };
    check(&["--mode"], "--mode requires text, json, rpc, or acp");
    check(&["--mode", "x"], "Invalid mode \"x\". Valid values: text, json, rpc, acp");
    check(&["-x"], "Unknown option: -x");
    check(&["--model"], "--model needs a value");
    check(&["--provider", "p"], "--provider requires --model (for example: --provider p --model <pattern>)");
    check(
        &["--api-key", "k"],
        "--api-key requires a model to be specified via --model, --provider/--model, or --models",
    );
    check(&["--demo", "--model", "m"], "--demo cannot be combined with --model");
    check(&["--fork", "x", "-c"], "--fork cannot be combined with --continue");
    check(
        &["--fork", "x", "--session", "y", "--no-session"],
        "--fork cannot be combined with --session, --no-session",
    );
    check(&["--session-id", "i", "--session", "y"], "--session-id cannot be combined with --session");
    check(&["--session-id", "i", "-c"], "--session-id cannot be combined with --continue");
    check(&["-r"], "--resume opens a picker");
    check(&["@file"], "@file arguments are not supported in RPC mode");
    check(&["--compat", "x"], "--compat knows only pi");
    check(&["--record="], "--record is empty");
    check(&["--replay-match", "x"], "--replay-match takes body or order");
    check(&["--shared", "--record", "x"], "--record and --replay are for a process of its own");
    check(&["--on-eof", "x"], "--on-eof takes abort or drain");
    check(&["--socket", "s"], "--socket is for the daemon");
}

#[test]
fn prompts_of_the_command_line() {
    let options =
        one_shot("agentd", &["-p", "one", "@a.txt", "two", "--model", "m", "--", "--three", "@four"]);
    assert_eq!((options.format, options.files.as_slice()), (OneShotFormat::Text, &["a.txt".to_owned()][..]));
    assert_eq!(options.messages, ["one", "two", "--three", "@four"]);
    assert_eq!(options.session.model.as_deref(), Some("m"));
    assert_eq!(one_shot("agentd", &["--print", "---\ntitle"]).messages, ["---\ntitle"]);
    assert_eq!(one_shot("agentd", &["--mode", "json", "-p", "x"]).format, OneShotFormat::Json);
    assert_eq!(one_shot("agentd", &["--mode", "rpc", "--mode", "text"]).format, OneShotFormat::Text);
    assert!(one_shot("agentd", &["--mode", "json", "--cumulative-updates", "x"]).cumulative);
    for (args, says) in [
        (&["-p", "--ready"][..], "--ready is for --stdio"),
        (&["-p", "--on-eof", "abort"], "--on-eof is for --stdio"),
        (&["--mode", "json", "--shared"], "--shared is for --stdio"),
        (&["-p", "--detached"], "--socket is for the daemon"),
        (&["serve", "-p"], "`serve` listens on a socket"),
        (&["-r"], "--resume opens a picker"),
    ] {
        let error = parse_as("agentd", args).unwrap_err();
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

/// The mode of work of a command line, by the name of the program.
#[test]
fn modes_of_work() {
    let way = |program: &str, args: &[&str]| match parse_as(program, args) {
        Ok(Invocation::Serve(_)) => "serve",
        Ok(Invocation::Stdio(_)) => "stdio",
        Ok(Invocation::Bridge(_)) => "bridge",
        Ok(Invocation::OneShot(options)) if options.format == OneShotFormat::Json => "json",
        Ok(Invocation::OneShot(_)) => "text",
        Ok(Invocation::Version { bare: true }) => "bare version",
        Ok(_) => "other",
        Err(_) => "error",
    };
    for (args, agentd, pi) in [
        (&[][..], "serve", "text"),
        (&["serve"], "serve", "serve"),
        (&["--compat", "pi"], "serve", "text"),
        (&["--compat", "pi", "--detached"], "serve", "error"),
        (&["hello"], "error", "text"),
        (&["--compat", "pi", "hello"], "text", "text"),
        (&["--compat", "pi", "-c"], "text", "text"),
        (&["-c"], "error", "text"),
        (&["-p"], "text", "text"),
        (&["--mode", "text"], "text", "text"),
        (&["--mode", "json", "hello"], "json", "json"),
        (&["--mode", "rpc", "-p", "hello"], "stdio", "stdio"),
        (&["--stdio"], "stdio", "stdio"),
        (&["--stdio", "--shared"], "bridge", "bridge"),
        (&["--version", "--compat", "pi"], "bare version", "bare version"),
    ] {
        assert_eq!((way("agentd", args), way("pi", args)), (agentd, pi), "{args:?}");
    }
    assert!(one_shot("pi", &["hello"]).session.compat);
}

#[test]
fn a_client_of_the_daemon_cannot_ask_for_another_mode_of_work() {
    let read = |args: &[&str]| {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        parse_session(&args, Path::new("/p"), [("HOME", "/h")].into_iter().collect())
    };
    assert!(read(&["--mode", "json"]).unwrap_err().contains("no flags of a session"));
    assert!(read(&["-p", "hello"]).unwrap_err().contains("no flags of a session"));
    assert_eq!(read(&["--compat", "pi", "--mode", "rpc", "-c"]).unwrap().session.target, Target::Continue);
    assert_eq!(read(&["--compat", "pi", "--model", "m"]).unwrap().session.model.as_deref(), Some("m"));
}
