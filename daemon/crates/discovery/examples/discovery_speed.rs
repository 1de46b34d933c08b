//! How long looking at the files of other tools takes: `cargo run --release -p agentd-discovery --example discovery_speed`.

use std::{
    fs,
    io::Write,
    path::Path,
    time::{Duration, Instant},
};

use agentd_config::{AgentDir, Environment};
use agentd_discovery::{DiscoveryCache, DiscoveryPlace, Snapshot, Switches, merge};

/// The runs of each measurement.
const RUNS: usize = 201;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let write = |name: String, text: &str| -> std::io::Result<()> {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        fs::write(path, text)
    };
    let count = repository(&write)?;
    for name in ["p/.git", "home", "empty/.git"] {
        fs::create_dir_all(folder.path().join(name))?;
    }
    // A scan is kept once its files are not new any more.
    std::thread::sleep(Duration::from_millis(200));

    let switches = Switches::default();
    let (place, nothing) = (place(folder.path(), "p"), place(folder.path(), "empty"));
    let cache = DiscoveryCache::default();
    let snapshot = cache.scan(&place, &switches);
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{count} files of other tools, {} items; median and 95th percentile",
        snapshot.items.len()
    )?;
    report(&mut out, "all files read", || drop(Snapshot::of(&place, &switches)))?;
    report(&mut out, "nothing has changed", || drop(cache.scan(&place, &switches)))?;
    report(&mut out, "deciding what counts", || drop(merge(Vec::new(), &snapshot, &switches, true)))?;
    report(&mut out, "a project without such files", || drop(Snapshot::of(&nothing, &switches)))?;
    let empty = DiscoveryCache::default();
    report(&mut out, "the same, and nothing has changed", || drop(empty.scan(&nothing, &switches)))?;
    Ok(())
}

fn place(root: &Path, cwd: &str) -> DiscoveryPlace {
    let environment: Environment = [("HOME", root.join("home"))].into_iter().collect();
    DiscoveryPlace::of(&root.join(cwd), &AgentDir::at(root.join("home/.agentd")), &environment)
}

/// Writes a repository with 200 files of several tools. Returns how many there are.
fn repository(write: &impl Fn(String, &str) -> std::io::Result<()>) -> std::io::Result<usize> {
    let body = "Instructions that are as long as such files are. ".repeat(40);
    for number in 0..60 {
        let rule = format!(
            "---\ndescription: Rule {number}: for some files\nglobs: src/{number}/**/*.ts,*.tsx\nalwaysApply: false\n---\n{body}"
        );
        write(format!("p/.cursor/rules/{}/rule-{number}.mdc", number % 6), &rule)?;
    }
    for number in 0..50 {
        let command = format!(
            "---\ndescription: Command {number}\nargument-hint: \"[file]\"\nallowed-tools: Read, Bash(git:*)\n---\n{body} $ARGUMENTS"
        );
        write(format!("p/.claude/commands/{}/command-{number}.md", number % 5), &command)?;
    }
    for number in 0..30 {
        let text =
            format!("---\nname: item-{number}\ndescription: Does {number}. Use it when asked.\n---\n{body}");
        write(format!("p/.claude/skills/item-{number}/SKILL.md"), &text)?;
        write(format!("p/.claude/agents/item-{number}.md"), &text)?;
    }
    for number in 0..27 {
        let text = format!("---\napplyTo: '**/*.{number}'\ndescription: Instructions {number}\n---\n{body}");
        write(format!("p/.github/instructions/item-{number}.instructions.md"), &text)?;
    }
    let servers =
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"b\": {\"url\": \"https://b.example/mcp\"}}}";
    write("p/.mcp.json".to_owned(), servers)?;
    write("p/.codex/config.toml".to_owned(), "[mcp_servers.c]\ncommand = \"c\"\n")?;
    write("p/GEMINI.md".to_owned(), &body)?;
    Ok(60 + 50 + 30 + 30 + 27 + 3)
}

fn report(out: &mut impl Write, what: &str, run: impl Fn()) -> std::io::Result<()> {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let (median, high) = (milliseconds(times[RUNS / 2]), milliseconds(times[RUNS * 95 / 100]));
    writeln!(out, "  {what:<34} {median:7.3} ms {high:7.3} ms")
}
