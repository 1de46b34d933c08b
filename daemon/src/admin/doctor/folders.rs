//! The folders that agentd writes to.

use std::{
    fs::{self, Metadata},
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use agentd_config::{Environment, SessionDir, session_dir, temp_dir};
use agentd_protocol::doctor::Check;
use agentd_safe_open::{FolderFault, check_own_folder, open_folder_around};
use rustix::fs::{Access, access};

use super::check::{CheckName, LoadedSetup, counted, shell_word, show};
use crate::admin::Context;

pub(super) const AGENT_DIR: CheckName = CheckName("agent_dir", "agent directory");
pub(super) const SESSIONS: CheckName = CheckName("sessions", "sessions");
const TEMP: CheckName = CheckName("temp_dir", "temporary files");

/// Session files that are counted; of more the result says "more than".
const MAX_COUNTED: usize = 20_000;

/// The agent directory: it exists or can be made, is writable, and is readable for its user alone.
pub(super) fn agent_dir(path: &Path) -> Check {
    let shown = show(path);
    let metadata = match usable(path) {
        Ok(Some(metadata)) => metadata,
        Ok(None) => return AGENT_DIR.ok(format!("{shown} will be made when something is saved")),
        Err(why) => {
            let advice = "Make it writable for your user, or set AGENTD_DIR to another folder.";
            return AGENT_DIR.problem(why, advice);
        }
    };
    if let Err(fault) = check_own_folder(path) {
        let detail = format!("{fault}. agentd does not start like that");
        let advice = match fault {
            FolderFault::Open { .. } => format!("chmod 700 {}", shell_word(path)),
            FolderFault::Foreign { .. } | FolderFault::InForeign { .. } => {
                "Set HOME, or AGENTD_DIR to a folder of yours.".to_owned()
            }
        };
        return AGENT_DIR.problem(detail, advice);
    }
    if let Some(folder) = open_folder_around(path) {
        let detail = format!("{shown}: everybody can put another folder in its place, in {}", show(folder));
        return AGENT_DIR.warning(detail, format!("chmod o-w {}", shell_word(folder)));
    }
    let mode = metadata.permissions().mode() & 0o777;
    let open = match mode {
        mode if mode & 0o020 != 0 => "change",
        mode if mode & 0o055 != 0 => "look into",
        _ => return AGENT_DIR.ok(shown),
    };
    let detail = format!("{shown}: other users can {open} it (mode {mode:04o})");
    AGENT_DIR.warning(detail, format!("chmod 700 {}", shell_word(path)))
}

/// The folder of session files, with their number and size.
pub(super) fn sessions(context: &Context, found: &LoadedSetup) -> Check {
    let setting = found.settings.settings.session_dir.as_deref();
    let rule = session_dir(None, &context.environment, setting, &found.agent_dir, &context.cwd);
    let (path, below) = match rule {
        SessionDir::PerCwd(root) => (root, true),
        SessionDir::Exact(path) => (path, false),
    };
    sessions_in(&path, below)
}

fn sessions_in(path: &Path, with_subfolders: bool) -> Check {
    let shown = show(path);
    match usable(path) {
        Ok(Some(_)) => {}
        Ok(None) => return SESSIONS.ok(format!("{shown} will be made with the first session")),
        Err(why) => {
            let advice = "Make it writable for your user, or choose another folder (setting sessionDir); \
                          `agentctl prompt --no-session` saves nothing.";
            return SESSIONS.problem(why, advice);
        }
    }
    let mut count = SessionCount::default();
    match count.folder(path, with_subfolders) {
        Ok(()) => {
            let more = if count.files >= MAX_COUNTED { "more than " } else { "" };
            SESSIONS.ok(format!("{shown}: {more}{}, {}", counted(count.files, "session"), size(count.bytes)))
        }
        Err(error) => SESSIONS.warning(
            format!("{shown} cannot be listed: {error}"),
            format!("chmod u+rwx {}", shell_word(path)),
        ),
    }
}

#[derive(Default)]
struct SessionCount {
    files: usize,
    bytes: u64,
}

impl SessionCount {
    fn folder(&mut self, path: &Path, with_subfolders: bool) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            if self.files >= MAX_COUNTED {
                break;
            }
            let entry = entry?;
            // A file may vanish meanwhile.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && with_subfolders {
                self.folder(&entry.path(), false)?;
            } else if metadata.is_file()
                && entry.path().extension().is_some_and(|extension| extension == "jsonl")
            {
                self.files += 1;
                self.bytes += metadata.len();
            }
        }
        Ok(())
    }
}

/// The folder for temporary files of commands and long outputs.
pub(super) fn temp(environment: &Environment) -> Check {
    let path = temp_dir(environment);
    match usable(&path) {
        Ok(Some(_)) => TEMP.ok(show(&path)),
        // agentd does not make this folder.
        Ok(None) => TEMP.problem(format!("{} is not there", show(&path)), temp_advice()),
        Err(why) => TEMP.problem(why, temp_advice()),
    }
}

fn temp_advice() -> String {
    "Set TMPDIR to a folder that your user can write to.".into()
}

/// A folder that can be listed and written to; `None` for one that can be made. The error says why neither is possible.
fn usable(path: &Path) -> Result<Option<Metadata>, String> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => Err(format!("{} is not a folder", show(path))),
        Ok(metadata) => match access(path, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(Some(metadata)),
            Err(error) => Err(format!("{} cannot be written to: {}", show(path), io::Error::from(error))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = nearest_existing(path);
            let can_make = above.is_dir() && access(&above, Access::WRITE_OK | Access::EXEC_OK).is_ok();
            if can_make {
                Ok(None)
            } else {
                Err(format!("{} is not there and cannot be made in {}", show(path), show(&above)))
            }
        }
        Err(error) => Err(format!("{} cannot be used: {error}", show(path))),
    }
}

fn nearest_existing(path: &Path) -> PathBuf {
    let existing = path.ancestors().skip(1).find(|above| fs::symlink_metadata(above).is_ok());
    existing.unwrap_or(Path::new("/")).to_owned()
}

/// Pure. A number of bytes with its unit.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 3] = ["kB", "MB", "GB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    while amount >= 999.95 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use agentd_protocol::doctor::CheckStatus;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_agent_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let check = agent_dir(&path);
        assert_eq!((check.status, path.exists()), (CheckStatus::Ok, false), "{check:?}");
        fs::create_dir_all(&path).unwrap();
        let at = |mode| {
            set_mode(&path, mode);
            agent_dir(&path)
        };
        assert_eq!(at(0o700).status, CheckStatus::Ok);
        for (mode, status, says) in [
            (0o755, CheckStatus::Warning, "look into"),
            (0o777, CheckStatus::Problem, "other users can change"),
        ] {
            let check = at(mode);
            assert_eq!(check.status, status);
            assert!(check.detail.contains(says), "{check:?}");
            assert_eq!(check.advice, Some(format!("chmod 700 {}", path.display())));
        }
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(agent_dir(&file).detail.ends_with("is not a folder"));
        // Even root cannot make a folder there.
        let below = agent_dir(&file.join("x"));
        assert_eq!(below.status, CheckStatus::Problem, "{below:?}");
    }

    #[test]
    fn sessions_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sessions");
        assert!(sessions_in(&root, true).detail.ends_with("will be made with the first session"));
        for (name, text) in
            [("--a--/1.jsonl", "12345"), ("--b--/2.jsonl", "1"), ("--b--/notes.txt", "xx"), ("3.jsonl", "22")]
        {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), text).unwrap();
        }
        assert!(sessions_in(&root, true).detail.ends_with(": 3 sessions, 8 bytes"));
        assert!(sessions_in(&root, false).detail.ends_with(": 1 session, 2 bytes"));
    }

    #[test]
    fn temporary_files() {
        let of = |path: &Path| temp(&[("TMPDIR", path.as_os_str())].into_iter().collect());
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of(folder.path()).status, CheckStatus::Ok);
        let gone = of(&folder.path().join("gone"));
        assert_eq!(gone.status, CheckStatus::Problem);
        assert!(gone.detail.ends_with("gone is not there"), "{gone:?}");
    }

    #[test]
    fn sizes_as_people_read_them() {
        assert_eq!(
            [size(0), size(999), size(1000), size(999_999), size(2_500_000), size(5_000_000_000_000)],
            ["0 bytes", "999 bytes", "1.0 kB", "1.0 MB", "2.5 MB", "5000.0 GB"]
        );
    }
}
