//! `.gitignore` and the like in a folder of skills.

use std::path::Path;

use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};

use super::resource_file;

const NAMES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// The rules of the folders on the way to where the walk is, the outermost first.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules(Vec<Gitignore>);

impl IgnoreRules {
    /// Takes in the rules of a folder that is entered.
    pub(super) fn enter(&mut self, folder: &Path, kind: DiagnosticKind, diagnostics: &mut Vec<Diagnostic>) {
        let mut builder = GitignoreBuilder::new(folder);
        for name in NAMES {
            let path = folder.join(name);
            let Some(text) = resource_file::read(&path, kind, diagnostics) else { continue };
            if let Err(error) = agentd_ignore_files::cost(&text) {
                let message = format!("this file is not used: it {error}");
                diagnostics.push(Diagnostic::warning(kind, message).at(&path));
                continue;
            }
            for (line, number) in text.lines().zip(1..) {
                if let Err(error) = builder.add_line(None, line) {
                    let message = format!("this line is not used: {error}");
                    diagnostics.push(Diagnostic::warning(kind, message).at(&path).line(number));
                }
            }
        }
        // Each line was found good by itself.
        self.0.push(builder.build().unwrap_or_else(|error| {
            let message = format!("the rules of this folder on what to ignore are not used: {error}");
            diagnostics.push(Diagnostic::warning(kind, message).at(folder));
            Gitignore::empty()
        }));
    }

    /// Gives the rules of the innermost folder up.
    pub(super) fn leave(&mut self) {
        self.0.pop();
    }

    /// Returns whether something in the innermost folder is ignored. The innermost rule counts.
    pub(super) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let found = self.0.iter().rev().map(|rules| rules.matched(path, is_folder));
        found
            .into_iter()
            .find(|found| !found.is_none())
            .is_some_and(|found| matches!(found, Match::Ignore(_)))
    }
}
