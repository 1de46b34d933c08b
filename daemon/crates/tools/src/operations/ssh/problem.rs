//! Translates failures on the other machine into errors that say what to do.

use std::io;

use agentd_protocol::text_bounds;

use crate::{errno, operations::Unreachable};

/// The most bytes shown of ssh's output.
const MAX_SHOWN: usize = 400;

/// Error texts of other systems' programs, and the system's code for each.
const MEANINGS: &[(&str, &str)] = &[
    ("No such file or directory", "ENOENT"),
    ("No such file", "ENOENT"),
    ("nonexistent directory", "ENOENT"),
    ("Directory nonexistent", "ENOENT"),
    ("Not a directory", "ENOTDIR"),
    ("Is a directory", "EISDIR"),
    ("Permission denied", "EACCES"),
    ("Operation not permitted", "EPERM"),
    ("Read-only file system", "EROFS"),
    ("Too many levels of symbolic links", "ELOOP"),
    ("Symbolic link loop", "ELOOP"),
    ("File name too long", "ENAMETOOLONG"),
    ("Filename too long", "ENAMETOOLONG"),
    ("File exists", "EEXIST"),
    ("No space left on device", "ENOSPC"),
    ("Disk quota exceeded", "EDQUOT"),
    ("Quota exceeded", "EDQUOT"),
    ("File too large", "EFBIG"),
    ("Invalid argument", "EINVAL"),
    ("Input/output error", "EIO"),
    ("I/O error", "EIO"),
    ("Text file busy", "ETXTBSY"),
    ("Device or resource busy", "EBUSY"),
];

/// The error of a program there, as the same error would be here.
pub(super) fn of_program(host: &str, said: &str) -> io::Error {
    let said = said.trim();
    let known = MEANINGS.iter().find(|(text, _)| said.ends_with(text));
    known
        .and_then(|(_, word)| errno::of_word(word))
        .unwrap_or_else(|| Unreachable(format!("{host}: {}", shortened(said))).into())
}

/// The error of an `ssh` process that ended.
pub(super) fn of_ssh(host: &str, said: &str, code: Option<i32>) -> Unreachable {
    let said = shortened(said);
    if code == Some(127) {
        return Unreachable(format!(
            "{host} lacks a program that agentd needs there: {said}. It needs sh, the coreutils, and bash for commands."
        ));
    }
    let advice = if said.contains("Host key verification failed")
        || said.contains("HOST IDENTIFICATION HAS CHANGED")
    {
        format!("Check its key, and accept it by connecting once by hand: ssh {host}")
    } else if said.contains("Permission denied") || said.contains("Too many authentication failures") {
        format!(
            "agentd cannot type passwords: set up a key or an agent, so that `ssh -o BatchMode=yes {host} true` works."
        )
    } else {
        format!("Check that `ssh {host}` works.")
    };
    if said.is_empty() {
        return Unreachable(format!("The connection to {host} was lost. {advice}"));
    }
    Unreachable(format!("Cannot reach {host} by ssh: {said}. {advice}"))
}

/// The error for unexpected output of a script.
pub(super) fn garbled(host: &str) -> Unreachable {
    Unreachable(format!(
        "{host} answered something unexpected: a file changed while it was read, or the connection is bad. Try again."
    ))
}

/// The last lines of a text, joined into one.
fn shortened(said: &str) -> String {
    let lines: Vec<&str> =
        said.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('@')).collect();
    let text = lines[lines.len().saturating_sub(4)..].join("; ");
    let shown = text_bounds::tail(&text, MAX_SHOWN).trim_end_matches('.');
    // Text from other programs must not control the reader's terminal.
    shown.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_say_has_a_code() {
        let code = |said| errno::code(&of_program("box", said));
        assert_eq!(code("ls: cannot access '/x': No such file or directory"), "ENOENT");
        assert_eq!(code("sh: 1: cannot open /x: No such file\n"), "ENOENT");
        assert_eq!(code(": Permission denied"), "EACCES");
        assert_eq!(code("mkdir: cannot create directory '/f/x': Not a directory"), "ENOTDIR");
        assert_eq!(of_program("box", "odd\n thing\x1b[2J").to_string(), "box: odd; thing[2J");
    }

    #[test]
    fn what_ssh_says_comes_with_advice() {
        let text = |said, code| of_ssh("box", said, Some(code)).0;
        assert_eq!(
            text("me@box: Permission denied (publickey).\r\n", 255),
            "Cannot reach box by ssh: me@box: Permission denied (publickey). agentd cannot type passwords: set up a key or \
             an agent, so that `ssh -o BatchMode=yes box true` works."
        );
        assert_eq!(
            text("No ED25519 host key is known for box.\nHost key verification failed.", 255),
            "Cannot reach box by ssh: No ED25519 host key is known for box.; Host key verification failed. Check its \
             key, and accept it by connecting once by hand: ssh box"
        );
        assert_eq!(text("", 255), "The connection to box was lost. Check that `ssh box` works.");
        assert!(text("bash: not found", 127).starts_with("box lacks a program"));
        assert!(text(&"x".repeat(5000), 255).len() < 600);
    }
}
