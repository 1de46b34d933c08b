//! The folders that commands run in, as far as `cd` tells.

use std::path::Path;

use agentd_protocol::plain_path::without_dots;

use super::{
    script::{Folders, SimpleCommand},
    word::Word,
};

/// The folders after a command: where it succeeded, and where it failed.
pub(super) struct After {
    pub(super) success: Folders,
    pub(super) failure: Folders,
}

impl After {
    /// A command that changes no folder.
    pub(super) fn same(folders: Folders) -> Self {
        Self { success: folders.clone(), failure: folders }
    }

    pub(super) fn any(self) -> Folders {
        self.success.or(self.failure)
    }
}

/// The folders after a command: `cd` and `pushd` change them.
pub(super) fn folders_after(command: &SimpleCommand, home: &str) -> After {
    let before = command.folders.clone();
    let unknown = || After { success: Folders::Unknown, failure: Folders::Unknown };
    let mut words = command.words.iter().peekable();
    let mut is_prefixed = false;
    // `time` is a reserved word, unless it is quoted: what it times runs in this shell.
    while let Some(text) = words.peek().and_then(|word| word.text()) {
        let is_prefix = match text {
            "command" | "builtin" | "time" => true,
            "-p" | "--" | "!" => is_prefixed,
            _ => false,
        };
        if !is_prefix {
            break;
        }
        is_prefixed = true;
        words.next();
    }
    match words.next().map(Word::text) {
        Some(Some("cd" | "pushd")) => {}
        Some(Some("popd")) => return unknown(),
        _ => return After::same(before),
    }
    let target = match (words.next(), words.next()) {
        (None, _) => home,
        (Some(word), None) => match word.text() {
            Some(text) if !text.starts_with(['-', '+']) && !text.is_empty() => text,
            _ => return unknown(),
        },
        _ => return unknown(),
    };
    let Folders::Known(folders) = &before else { return unknown() };
    let target = Path::new(target);
    let success = Folders::Known(folders.iter().map(|folder| without_dots(&folder.join(target))).collect());
    if is_prefixed {
        // A program may be what stands there, or `!` turn the result around.
        let any = success.or(before);
        return After { success: any.clone(), failure: any };
    }
    After { success, failure: before }
}
