//! The files of a service: their places, and their texts with the paths of this installation.

use std::path::{Path, PathBuf};

use crate::{cli::ServiceKind, exit::Fault};

const SYSTEMD_SERVICE: &str = include_str!("../../../contrib/systemd/agentd.service");
const SYSTEMD_SOCKET: &str = include_str!("../../../contrib/systemd/agentd.socket");
const LAUNCHD_AGENT: &str = include_str!("../../../contrib/launchd/dev.agentd.plist");

/// The places that a service is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServicePlaces {
    /// The user's home.
    pub(super) home: PathBuf,
    /// `XDG_CONFIG_HOME`, where it is set to an absolute path.
    pub(super) config_home: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`, where it is set.
    pub(super) runtime_dir: Option<PathBuf>,
    /// The program of the daemon.
    pub(super) program: PathBuf,
    /// The agent directory.
    pub(super) agent_dir: PathBuf,
    /// The socket where clients look for the daemon.
    pub(super) socket: PathBuf,
    /// The daemon's log.
    pub(super) log: PathBuf,
}

/// A file of a service, with its text before the line that says who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnitFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) syntax: CommentSyntax,
}

/// How a file holds a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommentSyntax {
    /// A line that begins with `#`.
    Hash,
    /// XML, behind the declaration.
    Xml,
}

impl ServicePlaces {
    /// The folder of a service manager's files.
    pub(super) fn folder(&self, kind: ServiceKind) -> PathBuf {
        match kind {
            ServiceKind::Systemd => {
                let config = self.config_home.clone().unwrap_or_else(|| self.home.join(".config"));
                config.join("systemd/user")
            }
            ServiceKind::Launchd => self.home.join("Library/LaunchAgents"),
        }
    }

    /// The files of the service.
    ///
    /// # Errors
    /// When a path cannot stand in such a file.
    pub(super) fn files(&self, kind: ServiceKind) -> Result<Vec<UnitFile>, Fault> {
        let folder = self.folder(kind);
        match kind {
            ServiceKind::Systemd => {
                let environment = if self.agent_dir == self.home.join(".agentd") {
                    String::new()
                } else {
                    format!("Environment=\"AGENTD_DIR={}\"\n", systemd_quoted(&self.agent_dir)?)
                };
                let program = systemd_program(&self.program)?;
                let service =
                    filled(SYSTEMD_SERVICE, &[("environment", &environment), ("program", &program)]);
                let socket = filled(SYSTEMD_SOCKET, &[("socket", &self.systemd_socket()?)]);
                let file = |name: &str, text| UnitFile {
                    path: folder.join(name),
                    text,
                    syntax: CommentSyntax::Hash,
                };
                Ok(vec![file("agentd.service", service), file("agentd.socket", socket)])
            }
            ServiceKind::Launchd => {
                let values = [
                    ("program", xml_text(&self.program)?),
                    ("socket", xml_text(&self.socket)?),
                    ("agent_dir", xml_text(&self.agent_dir)?),
                    ("log", xml_text(&self.log)?),
                ];
                let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
                let text = filled(LAUNCHD_AGENT, &values);
                let path = folder.join("dev.agentd.plist");
                Ok(vec![UnitFile { path, text, syntax: CommentSyntax::Xml }])
            }
        }
    }

    /// The socket in a unit: below `%t` where it is in the runtime directory, whose path differs from login to login.
    fn systemd_socket(&self) -> Result<String, Fault> {
        let below = self.runtime_dir.as_ref().and_then(|dir| self.socket.strip_prefix(dir).ok());
        let text = match below {
            Some(below) => format!("%t/{}", systemd_plain(below)?),
            None => systemd_plain(&self.socket)?,
        };
        // A backslash at the end of a line joins it with the next one.
        if text.ends_with('\\') { Err(unusable(&self.socket)) } else { Ok(text) }
    }
}

/// The template with `{name}` replaced by values; values are not looked at again.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len() + 256);
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let found = values.iter().find_map(|(name, value)| {
            let after = after.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((*value, after))
        });
        let (value, after) = found.unwrap_or_else(|| after.split_at(1));
        text.push_str(value);
        rest = after;
    }
    text + rest
}

/// A program at the beginning of `ExecStart`. systemd takes no quotes and backslashes there, escaped or not.
fn systemd_program(path: &Path) -> Result<String, Fault> {
    let quoted = systemd_plain(path)?;
    if quoted.contains(['"', '\'', '\\']) {
        return Err(unusable(path));
    }
    // `:` turns off the replacement of variables.
    let prefix = if quoted.contains('$') { ":" } else { "" };
    Ok(format!("{prefix}\"{quoted}\""))
}

/// A path between the double quotes of a unit.
fn systemd_quoted(path: &Path) -> Result<String, Fault> {
    Ok(systemd_plain(path)?.replace('\\', r"\\").replace('"', "\\\""))
}

/// A path in a unit where nothing is quoted.
fn systemd_plain(path: &Path) -> Result<String, Fault> {
    Ok(printable(path)?.replace('%', "%%"))
}

/// A path as the text of an XML element.
fn xml_text(path: &Path) -> Result<String, Fault> {
    Ok(printable(path)?.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"))
}

/// A path that can stand in one line of text.
fn printable(path: &Path) -> Result<&str, Fault> {
    path.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| unusable(path))
}

fn unusable(path: &Path) -> Fault {
    let text = format!(
        "Error: the path {:?} cannot stand in the file of a service: it is not UTF-8, or has control characters, quotes or backslashes.",
        path.display().to_string()
    );
    Fault::new(crate::exit::Exit::Failed, text)
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;

    fn places() -> ServicePlaces {
        ServicePlaces {
            home: "/home/me".into(),
            config_home: None,
            runtime_dir: Some("/run/user/1000".into()),
            program: "/home/me/.local/bin/agentd".into(),
            agent_dir: "/home/me/.agentd".into(),
            socket: "/run/user/1000/agentd/agentd.sock".into(),
            log: "/home/me/.agentd/logs/agentd.log".into(),
        }
    }

    fn line<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
        text.lines().find(|line| line.starts_with(begin))
    }

    #[test]
    fn the_usual_places() {
        let files = places().files(ServiceKind::Systemd).unwrap();
        let [service, socket] = files.as_slice() else { panic!("{files:?}") };
        assert_eq!(service.path, Path::new("/home/me/.config/systemd/user/agentd.service"));
        assert_eq!(line(&service.text, "ExecStart="), Some("ExecStart=\"/home/me/.local/bin/agentd\" serve"));
        assert_eq!(line(&service.text, "Environment="), None);
        assert_eq!(line(&socket.text, "ListenStream="), Some("ListenStream=%t/agentd/agentd.sock"));
        assert!(files.iter().all(|file| !file.text.contains(['{', '}'])), "{files:?}");
        let agent = places().files(ServiceKind::Launchd).unwrap().remove(0);
        assert_eq!(agent.path, Path::new("/home/me/Library/LaunchAgents/dev.agentd.plist"));
        assert!(agent.text.contains("<string>/home/me/.local/bin/agentd</string>"), "{}", agent.text);
        assert!(!agent.text.contains(['{', '}']), "{}", agent.text);
    }

    #[test]
    fn odd_paths_are_escaped() {
        let odd = ServicePlaces {
            config_home: Some("/c".into()),
            program: "/a b/%h/{socket}/agentd".into(),
            agent_dir: "/d 100%/\"q\"/back\\slash/$x".into(),
            socket: "/s p/%t/a.sock".into(),
            log: "/l<&>".into(),
            ..places()
        };
        let files = odd.files(ServiceKind::Systemd).unwrap();
        assert_eq!(files[0].path, Path::new("/c/systemd/user/agentd.service"));
        assert_eq!(line(&files[0].text, "ExecStart="), Some(r#"ExecStart="/a b/%%h/{socket}/agentd" serve"#));
        assert_eq!(
            line(&files[0].text, "Environment="),
            Some(r#"Environment="AGENTD_DIR=/d 100%%/\"q\"/back\\slash/$x""#)
        );
        assert_eq!(line(&files[1].text, "ListenStream="), Some("ListenStream=/s p/%%t/a.sock"));
        let agent = odd.files(ServiceKind::Launchd).unwrap().remove(0).text;
        assert!(agent.contains("<string>/l&lt;&amp;&gt;</string>"), "{agent}");
        let dollar = ServicePlaces { program: "/$HOME/agentd".into(), ..places() };
        let files = dollar.files(ServiceKind::Systemd).unwrap();
        assert_eq!(line(&files[0].text, "ExecStart="), Some("ExecStart=:\"/$HOME/agentd\" serve"));
    }

    #[test]
    fn paths_that_no_line_can_hold_are_refused() {
        for bad in [OsStr::new("/a\nExecStartPre=/bin/x"), OsStr::from_bytes(b"/\xff")] {
            let places = ServicePlaces { program: bad.into(), ..places() };
            for kind in [ServiceKind::Systemd, ServiceKind::Launchd] {
                assert!(places.files(kind).unwrap_err().message.contains("cannot stand"), "{bad:?}");
            }
        }
        for quoted in ["/a\"b/agentd", "/a'b/agentd", "/a\\b/agentd"] {
            let places = ServicePlaces { program: quoted.into(), ..places() };
            assert!(places.files(ServiceKind::Systemd).is_err(), "{quoted}");
            assert!(places.files(ServiceKind::Launchd).is_ok(), "{quoted}");
        }
        let joined = ServicePlaces { socket: "/a\\".into(), ..places() };
        assert!(joined.files(ServiceKind::Systemd).is_err());
    }
}
