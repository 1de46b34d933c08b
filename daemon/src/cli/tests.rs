use agentd_session::Target;

use super::*;

fn read(args: &[&str]) -> Result<Invocation, String> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    parse("agentd", &args, Path::new("/p"), Environment::default())
}

fn stdio(args: &[&str]) -> StdioOptions {
    match read(args).unwrap() {
        Invocation::Stdio(options) => *options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn flags_come_in_any_order_and_the_last_wins() {
    let options = stdio(&[
        "--model",
        "a",
        "-t",
        "read, bash",
        "--mode",
        "rpc",
        "--model",
        "b",
        "-xt",
        "bash",
        "--append-system-prompt",
        "x",
        "--append-system-prompt=y",
        "--no-themes",
        "--theme",
        "dark",
        "ignored",
        "--",
        "--ignored-as-well",
    ]);
    assert_eq!(options.session.model.as_deref(), Some("b"));
    assert_eq!(options.session.append_system_prompt, ["x", "y"]);
    assert_eq!(options.session.tools.allow, Some(vec!["read".into(), "bash".into()]));
    assert_eq!(options.session.tools.exclude, ["bash"]);
    assert_eq!(options.session.target, Target::New);
}

#[test]
fn targets() {
    assert_eq!(stdio(&["--stdio", "-c", "--session", "x"]).session.target, Target::Existing("x".into()));
    assert_eq!(stdio(&["--stdio", "-c"]).session.target, Target::Continue);
    assert_eq!(
        stdio(&["--stdio", "--no-session", "--session-id", "i"]).session.target,
        Target::Ephemeral(Some("i".into()))
    );
}

#[test]
fn an_empty_value_may_be_as_if_the_flag_were_not_there() {
    let as_in_pi = [
        "--session",
        "--fork",
        "--session-dir",
        "--provider",
        "--model",
        "--api-key",
        "--system-prompt",
        "--append-system-prompt",
    ];
    let plain = format!("{:?}", stdio(&["--compat", "pi", "--stdio"]));
    for flag in as_in_pi {
        assert_eq!(format!("{:?}", stdio(&["--compat", "pi", "--stdio", flag, ""])), plain, "{flag}");
    }
    assert_eq!(stdio(&["--stdio", "--model", "a", "--model="]).session.model, None);
}

#[test]
fn unknown_flags_are_those_of_extensions() {
    let given = |args: &[&str]| {
        let args = [&["--stdio"], args].concat();
        let flags = stdio(&args).session.extension_flags;
        flags.into_iter().map(|flag| (flag.name, flag.value, flag.unknown)).collect::<Vec<_>>()
    };
    let unknown = |name: &str| format!("Unknown option: --{name}. `agentd --help` lists the flags.");
    let flag = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned), unknown(name));
    assert_eq!(given(&["--plan", "-c"]), [flag("plan", None)]);
    assert_eq!(
        given(&["--config", "a.json", "--x=", "--y=@z"]),
        [flag("config", Some("a.json")), flag("x", Some("")), flag("y", Some("@z")),]
    );
    let typed = given(&["--sesion", "x"]);
    assert!(typed[0].2.starts_with("Unknown option: --sesion. Did you mean --session?"), "{typed:?}");
}

#[test]
fn mistakes_are_named() {
    let check = |args: &[&str], part: &str| {
        let error = read(args).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    check(&["--stdio", "--model"], "--model needs a value");
    check(&["--stdio", "-z"], "Unknown option: -z");
    check(&["--mode", "x"], "Invalid mode \"x\". Valid values: text, json, rpc, acp");
    check(&["--stdio", "--provider", "p"], "--provider requires --model (for example: --provider p");
    check(&["--stdio", "--api-key", "k"], "--api-key requires a model");
    check(&["--stdio", "@a.txt"], "@file arguments are not supported in RPC mode");
    check(&["--stdio", "--socket", "/s"], "--socket is for the daemon");
    check(&["serve", "--stdio"], "`serve` listens on a socket");
    check(&["--model", "m"], "agentd --stdio --model");
    check(&["serve", "-c"], "-c is about one session");
    check(&["serv"], "serv is about one session");
    check(&["serve", "--bogus"], "Unknown option: --bogus");
    check(&["serve"], "set HOME");
    check(&["--stdio", "-t", "read,+grep"], "-t: tool names cannot be mixed with +name or -name entries");
    check(&["--stdio", "--tools", "-bash,*"], "--tools: tool names cannot be mixed with");
    check(&["--stdio", "--name", " "], "--name requires a non-empty value");
    check(&["--stdio", "--session-id", "", "-c"], "--session-id is empty");
    assert_eq!(stdio(&["--stdio", "--thinking", "lots"]).warnings.len(), 1);
}

fn serve(args: &[&str], variables: &[(&str, &str)]) -> ServeOptions {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    match parse("agentd", &args, Path::new("/p"), variables.iter().copied().collect()).unwrap() {
        Invocation::Serve(options) => *options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_daemon_has_a_socket_and_an_agent_directory() {
    let plain = serve(&[], &[("HOME", "/h")]);
    assert_eq!(plain.agent_dir, Path::new("/h/.agentd"));
    assert_eq!((plain.socket.as_path(), plain.detached), (Path::new("/h/.agentd/run/agentd.sock"), false));
    let given = serve(&["serve", "--socket", "s/a.sock", "--detached"], &[("HOME", "/h")]);
    assert_eq!((given.socket.as_path(), given.detached), (Path::new("/p/s/a.sock"), true));
    let compat = serve(&["serve", "--compat=pi"], &[("HOME", "/h")]);
    assert_eq!((compat.agent_dir.as_path(), compat.base.compat), (Path::new("/h/.pi/agent"), true));
}

#[test]
fn relative_agent_directories_mean_the_same_in_every_session() {
    let options = serve(&["serve"], &[("HOME", "/h"), ("AGENTD_DIR", "a")]);
    assert_eq!(options.agent_dir, Path::new("/p/a"));
    assert_eq!(options.base.environment.get("AGENTD_DIR"), Some("/p/a"));
}

#[test]
fn keys_are_not_printed() {
    let options = stdio(&["--stdio", "--model", "m", "--api-key", "sk-canary"]);
    assert!(!format!("{options:?}").contains("canary"));
}

fn error(args: &[&str]) -> String {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    parse("agentd", &args, Path::new("/p"), [("HOME", "/h")].into_iter().collect()).unwrap_err()
}

#[test]
fn a_bridge_passes_its_arguments_on_and_finds_mistakes_itself() {
    let given = ["--stdio", "--shared", "--model", "m", "--api-key", "sk-canary", "--thinking", "lots"];
    let args: Vec<String> = given.iter().map(|arg| (*arg).to_owned()).collect();
    let parsed = parse("pi", &args, Path::new("/p"), [("HOME", "/h")].into_iter().collect()).unwrap();
    let Invocation::Bridge(options) = parsed else { panic!("{parsed:?}") };
    assert_eq!(
        (options.args.as_slice(), options.cwd.as_path(), options.compat),
        (&args[..], Path::new("/p"), true)
    );
    assert!(options.warnings[0].contains("lots"), "{options:?}");
    assert!(!format!("{options:?}").contains("canary"));
    // The daemon reads what the bridge sends.
    let read = super::parse_session(&args, Path::new("/q"), [("HOME", "/h")].into_iter().collect()).unwrap();
    assert_eq!((read.session.model.as_deref(), read.session.cwd.as_path()), (Some("m"), Path::new("/q")));
    for args in [&["--shared"][..], &["serve", "--shared"]] {
        assert!(error(args).contains("--shared is for --stdio"), "{}", error(args));
    }
    assert!(error(&["--stdio", "--shared", "--socket", "s"]).contains("AGENTD_SOCKET"));
}

#[test]
fn an_export_names_a_file_and_where_its_page_goes() {
    let export = |args: &[&str]| match read(args).unwrap() {
        Invocation::Export { input, output } => (input, output),
        other => panic!("{other:?}"),
    };
    let to = |input: &str, output: Option<&str>| (input.to_owned(), output.map(str::to_owned));
    assert_eq!(export(&["--export", "a.jsonl"]), to("a.jsonl", None));
    assert_eq!(export(&["--export=a.jsonl", "b.html"]), to("a.jsonl", Some("b.html")));
    assert_eq!(export(&["--export", "-", "-", "--stdio"]), to("-", Some("-")));
    assert_eq!(export(&["--export", "a.jsonl", "--offline"]), to("a.jsonl", None));
    for missing in [&["--export"][..], &["--export", "--stdio"]] {
        assert!(read(missing).unwrap_err().contains("--export needs a session file"));
    }
    let args = ["--export".to_owned(), "a".to_owned()];
    assert!(parse_session(&args, Path::new("/p"), Environment::default()).unwrap_err().contains("--export"));
}
