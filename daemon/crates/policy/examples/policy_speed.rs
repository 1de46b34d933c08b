//! Measures what a verdict costs: `cargo run --release -p agentd-policy --example policy_speed`. The commands are those of the table of
//! the tests, and some that are long.

use std::{
    error::Error,
    io::Write,
    time::{Duration, Instant},
};

use agentd_policy::{Policy, PolicyOptions, RuleLayer, RuleSource, Subject};
use agentd_protocol::settings::PermissionSettings;
use serde::Deserialize;

/// How often each command is judged; the fastest counts.
const ROUNDS: u32 = 20;

#[derive(Deserialize)]
struct Table {
    permissions: PermissionSettings,
    examples: Vec<Example>,
}

#[derive(Deserialize)]
struct Example {
    command: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let table: Table = serde_json::from_str(include_str!("../tests/shell-commands.json"))?;
    let folder = std::env::current_dir()?;
    let policy = Policy::new(PolicyOptions {
        preset: table.permissions.preset.unwrap_or_default(),
        project_preset: None,
        layers: vec![RuleLayer {
            source: RuleSource::User,
            rules: table.permissions.rules.unwrap_or_default(),
        }],
        cwd: folder.clone(),
        folders: Vec::new(),
        home: "/home/u".into(),
    })?;
    let judge = |tool: &str, subject: Subject<'_>| {
        let rounds = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            std::hint::black_box(policy.decide(tool, subject));
            start.elapsed()
        });
        rounds.min().unwrap_or_default()
    };
    let command = |text: &str| judge("bash", Subject::Command { text, folder: &folder, variables: &[] });
    let mut times: Vec<Duration> = table.examples.iter().map(|example| command(&example.command)).collect();
    times.sort_unstable();
    let at = |part: usize| {
        times.get((times.len() * part / 1000).min(times.len() - 1)).copied().unwrap_or_default()
    };
    writeln!(
        out,
        "{} commands: median {:?}, p99 {:?}, slowest {:?}",
        times.len(),
        at(500),
        at(990),
        at(1000)
    )?;
    let path = folder.join("src/lib.rs");
    let read = judge("read", Subject::Read { path: &path, is_deep: false });
    writeln!(
        out,
        "a file that is read: {read:?}, one that is written: {:?}",
        judge("write", Subject::Write { path: &path })
    )?;
    for (name, text) in [
        ("100 commands", "ls -la src | head -5; ".repeat(50)),
        (
            "60 kB of one here-document",
            format!("cat > a.txt <<'EOF'\n{}EOF\n", "some words of a text\n".repeat(2800)),
        ),
        ("60 kB of pipes", format!("{}ls", "ls|".repeat(20_000))),
        ("1 MB", "a".repeat(1 << 20)),
    ] {
        writeln!(out, "{name}: {:?}", command(&text))?;
    }
    writeln!(out, "texts of 2, 4 and 8 kB, made of the same piece:")?;
    for (name, piece) in [
        ("words", "word "),
        ("words in quotes", "\"a b\" "),
        ("expansions", "$x "),
        ("a list", "ls;"),
        ("lines", "ls\n"),
        ("in the background", "ls& "),
        ("&&", "ls&&"),
        ("cd and ||", "cd a||"),
        ("unfinished pipes", "ls|"),
        ("unfinished quotes", "\"$(\" "),
        ("pipes in a list", "ls -la src | head -5; "),
        ("redirections", ">a "),
        ("assignments", "a=1 "),
        ("substitutions", "echo $(ls) "),
        ("here-documents", "cat <<E\n$x\nE\n"),
        ("loops", "for a in b; do ls; done; "),
        ("cases", "case a in b) ls;; esac; "),
        ("tests", "[[ a == b ]]&&"),
        ("commands of xargs", "xargs "),
        ("brackets", "("),
        ("brackets of substitutions", "$("),
        ("braces", "{ "),
    ] {
        let times =
            [2, 4, 8].map(|size| command(&format!("echo {}", piece.repeat(size * 1000 / piece.len()))));
        writeln!(out, "  {name}: {times:?}")?;
    }
    Ok(())
}
