//! The address of another machine, and a folder there.

use std::{fmt, str::FromStr};

/// `HOST` or `HOST:DIR`, where `HOST` is whatever `ssh` takes: a name of its configuration, `user@name`, or an address
/// (IPv6 in brackets when a folder follows).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshTarget {
    /// The host as given to `ssh`.
    pub host: String,
    /// The working directory there: absolute, or relative to the home directory; empty for the home directory.
    pub directory: String,
}

/// Why a text is not the address of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no HOST or HOST:DIR: {reason}")]
pub struct SshTargetError {
    text: String,
    reason: &'static str,
}

impl FromStr for SshTarget {
    type Err = SshTargetError;

    fn from_str(text: &str) -> Result<Self, SshTargetError> {
        let wrong = |reason| Err(SshTargetError { text: text.to_owned(), reason });
        if text.starts_with("ssh://") {
            return wrong("write the host as for the command ssh, without ssh://");
        }
        if text.contains(|c: char| c.is_control()) {
            return wrong("it holds a control character");
        }
        let bracket =
            text.find('[').and_then(|open| text[open..].find(']').map(|close| (open, open + close)));
        let (host, directory) = match bracket {
            Some((open, close)) => match text[close + 1..].strip_prefix(':') {
                Some(directory) => (format!("{}{}", &text[..open], &text[open + 1..close]), directory),
                None if close + 1 == text.len() => {
                    (format!("{}{}", &text[..open], &text[open + 1..close]), "")
                }
                None => return wrong("after the bracket there is a colon or nothing"),
            },
            None => {
                let (host, directory) = text.split_once(':').unwrap_or((text, ""));
                (host.to_owned(), directory)
            }
        };
        if host.is_empty() {
            return wrong("the host is missing");
        }
        if host.starts_with('-') {
            return wrong("a host cannot begin with a dash");
        }
        if host.contains(' ') {
            return wrong("a host has no spaces");
        }
        let directory = match directory.strip_prefix('~') {
            Some("") => "",
            Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
            _ => directory,
        };
        Ok(Self { host, directory: directory.to_owned() })
    }
}

impl fmt::Display for SshTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.directory.is_empty() {
            f.write_str(&self.host)
        } else {
            write!(f, "{}:{}", self.host, self.directory)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_folders_are_told_apart() {
        for (text, host, directory) in [
            ("box", "box", ""),
            ("me@box", "me@box", ""),
            ("box:/srv/a b", "box", "/srv/a b"),
            ("box:src", "box", "src"),
            ("box:~", "box", ""),
            ("box:~/src", "box", "src"),
            ("box:~other", "box", "~other"),
            ("box:a:b", "box", "a:b"),
            ("[::1]:/x", "::1", "/x"),
            ("me@[::1]", "me@::1", ""),
        ] {
            let target: SshTarget = text.parse().unwrap();
            assert_eq!((target.host.as_str(), target.directory.as_str()), (host, directory), "{text}");
        }
        for (text, reason) in [
            ("", "the host is missing"),
            (":/x", "the host is missing"),
            ("-oProxyCommand=x", "a host cannot begin with a dash"),
            ("ssh://box", "write the host as for the command ssh, without ssh://"),
            ("a b", "a host has no spaces"),
            ("box\n", "it holds a control character"),
            ("[::1]x", "after the bracket there is a colon or nothing"),
        ] {
            let error = text.parse::<SshTarget>().unwrap_err().to_string();
            assert_eq!(error, format!("\"{text}\" is no HOST or HOST:DIR: {reason}"));
        }
    }
}
