//! The token that requests must bring, and the file that holds it.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use agentd_safe_open::{LinkPolicy, OpenRules};
use uuid::Uuid;

use crate::exit::{Exit, Fault};

/// The longest file of a token, in bytes.
const MAX_BYTES: u64 = 4096;

/// The shortest token, in bytes: what is shorter can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// A secret. Not `Debug`, and never printed.
pub(super) struct Token(String);

impl Token {
    /// The token of a file; one that is missing is made, private to this user, with a new token.
    ///
    /// # Errors
    /// When the file cannot be read or made, can be read by others, or holds no token.
    pub(super) fn of_file(path: &Path) -> Result<Self, Fault> {
        let fault = |why: String| {
            Fault::new(Exit::Failed, format!("agentctl: cannot use the token file {}: {why}", path.display()))
        };
        if let Some(made) = make(path).map_err(|error| fault(error.to_string()))? {
            return Ok(made);
        }
        let rules = OpenRules::new(LinkPolicy::Followed).max_bytes(MAX_BYTES);
        let file = rules.open(path).map_err(|error| fault(error.problem().to_string()))?;
        let mode = file.metadata().map_err(|error| fault(error.to_string()))?.mode();
        if mode & 0o077 != 0 {
            return Err(fault(format!("others can read it. Run: chmod 600 {}", path.display())));
        }
        let bytes = rules.read_open(&file, path).map_err(|error| fault(error.problem().to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| fault("it is not text".into()))?;
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES || token.contains(|letter: char| !letter.is_ascii_graphic()) {
            return Err(fault(format!(
                "a token has at least {MIN_TOKEN_BYTES} printable characters without blanks. Remove the file, and a new one is made."
            )));
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether the value of a header `Authorization` brings it. Takes the same time wherever the two differ.
    pub(super) fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, given)) = authorization.split_at_checked("Bearer ".len()) else { return false };
        let differs = given.iter().zip(self.0.as_bytes()).fold(0, |all, (one, other)| all | (one ^ other));
        scheme.eq_ignore_ascii_case(b"Bearer ") && given.len() == self.0.len() && differs == 0
    }
}

/// Makes a file with a new token; `None` where there is one.
fn make(path: &Path) -> std::io::Result<Option<Token>> {
    let mut file = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    file.write_all(format!("{token}\n").as_bytes())?;
    Ok(Some(Token(token)))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn a_missing_file_is_made_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::of_file(&path).map_err(|fault| fault.message).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = Token::of_file(&path).map_err(|fault| fault.message).unwrap();
        assert_eq!(made.0, read.0);
        assert!(made.is_in(format!("bearer {}", read.0).as_bytes()));
    }

    #[test]
    fn what_is_not_the_token_is_refused() {
        let token = Token("0123456789abcdef".into());
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeX",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
        ] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn files_that_hold_no_secret_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (content, mode, named) in [
            ("0123456789abcdef", 0o644, "chmod 600"),
            ("short", 0o600, "at least 16"),
            ("with blanks in between", 0o600, "without blanks"),
        ] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let Err(fault) = Token::of_file(&path) else { panic!("{content}") };
            assert!(fault.message.contains(named) && !fault.message.contains(content), "{}", fault.message);
        }
    }
}
