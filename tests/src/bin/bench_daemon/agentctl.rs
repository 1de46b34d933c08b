//! Scenarios about `agentctl`: a prompt from the shell's view, and the interactive client on a terminal.

use std::time::{Duration, Instant};

use agentd_e2e::{Home, MockServer, Reply, Service, Terminal, binaries, ctl, processes, sse};

use crate::{
    clients::long_session,
    report::{Report, Scale},
};

/// How many messages the long conversation has.
const MESSAGES: usize = 10_000;

pub(crate) fn run_prompt(scale: Scale, report: &mut Report) {
    let server = MockServer::always(Reply::stream(sse::answer("Ok.")));
    let home = Home::with_model(&server);
    let mut measure = |name: &str, args: &[&str]| {
        let mut times: Vec<Duration> = (0..scale.of(40, 3))
            .map(|_| {
                let begun = Instant::now();
                let ended = ctl::run(&home, args);
                assert_eq!((ended.code, ended.stdout.as_str()), (0, "Ok.\n"), "{ended:?}");
                begun.elapsed()
            })
            .collect();
        report.times(name, &mut times, 95);
    };
    measure("agentctl prompt, start to exit, an agentd of its own", &["prompt", "Go."]);
    let _service = Service::start(&home, &[]);
    measure("agentctl prompt --shared, start to exit", &["prompt", "--shared", "Go."]);
}

pub(crate) fn run_chat(scale: Scale, report: &mut Report) {
    let home = Home::new();
    let file = home.project().join("long.jsonl");
    home.write("long.jsonl", &long_session(&home, MESSAGES));
    let _service = Service::start(&home, &[]);
    let program = binaries::agentctl();
    let args = ["chat", "--demo", "--session", file.to_str().expect("a path of UTF-8")];
    let start = || {
        let begun = Instant::now();
        let mut terminal =
            Terminal::start_with(&home, &program, &args, Some((120, 40)), &[("TERM", "xterm-256color")]);
        // The input is drawn last.
        terminal.wait_for("\u{1b}[?25h");
        (begun.elapsed(), terminal)
    };
    let mut times: Vec<Duration> = (0..scale.of(5, 1))
        .map(|_| {
            let (time, mut terminal) = start();
            terminal.press("\u{4}");
            terminal.wait_for_end();
            time
        })
        .collect();
    report.times(&format!("agentctl chat, start to the screen of {MESSAGES} messages"), &mut times, 95);
    let (_, mut terminal) = start();
    // The first key waits for what is left of the start.
    terminal.press_until("\u{15}", "\u{1b}[?25h");
    let mut times: Vec<Duration> = ('a'..='z')
        .cycle()
        .take(scale.of(200, 10))
        .map(|key| {
            let time = terminal.press_until(&key.to_string(), &key.to_string());
            terminal.press_until("\u{15}", "\u{1b}[?25h");
            time
        })
        .collect();
    report.times("a key, to the terminal with it", &mut times, 95);
    let mut times: Vec<Duration> =
        (0..scale.of(50, 5)).map(|_| terminal.press_until("\u{1b}[5~", "\u{1b}[?25h")).collect();
    report.times("a page back, to the terminal with it", &mut times, 95);
    let usage = processes::usage(terminal.id());
    report.bytes("the client's memory, RSS", usage.resident);
    report.bytes("of it private", usage.private);
}
