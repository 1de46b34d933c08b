//! Mistreats the daemon and checks its promises (docs/reliability.md): `cargo run --release -p agentd-e2e --bin torture --
//! kill|soak|crowd|load [--seed N] [--bin-dir DIR] [--json] [flags of the sub-command]`.
//!
//! The first line prints the seed, which repeats the same decisions; the last line on stdout is the summary, as JSON. The
//! exit code is 0 only if all promises held. `--json` prints only the summary.

// A failure of the harness itself panics, as in a test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod cli;
mod crowd;
mod kill;
mod load;
mod model;
mod peer;
mod soak;
mod tally;

use std::{env, process::ExitCode};

use serde_json::json;

use cli::{Options, Outcome};

/// A sub-command: returns its outcome, or an error of the command line.
type Run = fn(&mut Options) -> Result<Outcome, String>;

const COMMANDS: &[(&str, &str, Run)] = &[
    ("kill", "kill -9 at bad moments, and compare with what was acknowledged", kill::run),
    ("soak", "mixed work of good and bad clients for a long time: what is used stays flat", soak::run),
    ("crowd", "many clients in a few sessions, under each other's feet: everything is answered", crowd::run),
    ("load", "commands in a second, floods beside another client's prompt, memory at each load", load::run),
];

fn main() -> ExitCode {
    let mut args = env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let Some((name, _, run)) = COMMANDS.iter().find(|(known, ..)| *known == name) else {
        let list: String = COMMANDS.iter().map(|(name, about, _)| format!("\n  {name:<6}{about}")).collect();
        cli::error(&format!("usage: torture COMMAND [FLAGS]; there are:{list}"));
        return ExitCode::from(2);
    };
    let outcome = Options::read(args.collect()).and_then(|mut options| {
        cli::line(&options, &format!("torture {name} --seed {}", options.seed));
        Ok((run(&mut options)?, options.seed))
    });
    match outcome {
        Ok((Outcome { held, summary }, seed)) => {
            let mut line = json!({"torture": name, "seed": seed, "held": held});
            for (key, value) in summary.as_object().into_iter().flatten() {
                line[key] = value.clone();
            }
            cli::summary(&line);
            if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(complaint) => {
            cli::error(&complaint);
            ExitCode::from(2)
        }
    }
}
