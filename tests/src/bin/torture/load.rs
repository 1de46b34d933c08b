//! How much the daemon can take: commands in a second, floods beside another client's prompt, memory at each load.
//!
//! `torture load [--short] [--only rates|flood|memory]`

mod flood;
mod memory;
mod rates;

use serde_json::{Value, json};

use crate::{Outcome, options::Options, say};

/// What all parts know.
pub(crate) struct Load<'a> {
    options: &'a Options,
    /// Little of everything: to see that it holds, not to measure.
    pub(crate) is_short: bool,
}

impl Load<'_> {
    /// The number to use: the first one, and the second one when it has to be short.
    pub(crate) fn of(&self, full: usize, short: usize) -> usize {
        if self.is_short { short } else { full }
    }

    pub(crate) fn say(&self, text: &str) {
        say::line(self.options, text);
    }
}

/// A part: its figures, and what did not hold.
type Part = fn(&Load<'_>) -> Result<(Value, Vec<String>), crate::wire::Trouble>;

/// Runs the sub-command.
pub(crate) fn run(options: &mut Options) -> Result<Outcome, String> {
    const PARTS: [(&str, Part); 3] = [("rates", rates::run), ("flood", flood::run), ("memory", memory::run)];
    let is_short = options.flag("--short");
    let only: Option<String> = options.value("--only")?;
    options.end()?;
    if let Some(only) = only.as_ref().filter(|only| PARTS.iter().all(|(name, _)| name != only)) {
        return Err(format!("--only: there is no part \"{only}\""));
    }
    let load = Load { options, is_short };
    let (mut summary, mut findings) = (json!({"short": is_short}), Vec::new());
    for (name, part) in PARTS.iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name)) {
        match part(&load) {
            Ok((figures, found)) => {
                summary[*name] = figures;
                findings.extend(found);
            }
            Err(trouble) => findings.push(format!("{name}: {trouble}")),
        }
    }
    findings.iter().for_each(|text| say::error(&format!("FINDING: {text}")));
    summary["findings"] = json!(findings);
    Ok(Outcome { held: findings.is_empty(), summary })
}
