//! `agentctl service`: the daemon as a service of systemd or launchd.

mod own_files;
mod unit_files;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agentd_connect::find_agentd;
use serde::Serialize;

use self::{
    own_files::Found,
    unit_files::{ServicePlaces, UnitFile},
};
use crate::{
    cli::{ServiceInstallOptions, ServiceKind, ServiceStatusOptions, ServiceUninstallOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    output_file::{self, Present},
    render::shell_word,
    shared_daemon::Endpoint,
};

/// The permissions of a unit, less the umask: service managers read them, and nothing in them is secret.
const FILE_MODE: u32 = 0o644;

/// The name of the launch agent.
const LAUNCHD_LABEL: &str = "dev.agentd";

/// Writes the files of the service, or prints them.
pub(crate) fn install(options: &ServiceInstallOptions) -> Exit {
    conclude(install_files(options))
}

/// Removes the files of the service.
pub(crate) fn uninstall(options: &ServiceUninstallOptions) -> Exit {
    conclude(uninstall_files(options))
}

/// Shows the files of the service.
pub(crate) fn status(options: &ServiceStatusOptions) -> Exit {
    conclude(show_files(options))
}

fn install_files(options: &ServiceInstallOptions) -> Result<Exit, Fault> {
    let kind = options.kind.unwrap_or(ServiceKind::native());
    let places = places(find_agentd()?)?;
    let files = places.files(kind)?;
    if options.print {
        let several = files.len() > 1;
        let texts: Vec<String> = files
            .iter()
            .map(|file| {
                let name = if several { format!("# {}\n", file.path.display()) } else { String::new() };
                format!("{name}{}", file.contents())
            })
            .collect();
        return output::print(&texts.join("\n"));
    }
    // Looked at before the first is written: all or none.
    let found: Vec<Found> = files.iter().map(look).collect::<Result<_, _>>()?;
    refuse_others(&files, &found, options.force, "replace")?;
    let mut said = String::new();
    for (file, found) in files.iter().zip(&found) {
        if *found == Found::Current {
            said.push_str(&format!("{} is up to date\n", file.path.display()));
            continue;
        }
        write(file)?;
        said.push_str(&format!("wrote {}\n", file.path.display()));
    }
    output::print(&said)?;
    if kind == ServiceKind::Systemd && places.runtime_dir.is_none() {
        print_stderr(
            "XDG_RUNTIME_DIR is not set here. The service listens where programs without it look for the daemon; for those of a \
             login session install it from one.",
        );
    }
    let folder = places.folder(kind);
    let commands = match kind {
        ServiceKind::Systemd => vec![
            words(&["systemctl", "--user", "daemon-reload"]),
            words(&["systemctl", "--user", "enable", "--now", "agentd.socket"]),
        ],
        ServiceKind::Launchd => vec![bootstrap(&folder)],
    };
    if !options.now {
        return output::print(&format!("It starts after:\n{}", listed(&commands)));
    }
    if kind == ServiceKind::Launchd {
        // A job that is loaded already is not loaded again. It fails for one that is not.
        let _ = quiet(&bootout());
    }
    commands.iter().try_for_each(|command| execute(command))?;
    output::print(match kind {
        ServiceKind::Systemd => "The first client starts the daemon.\n",
        ServiceKind::Launchd => "The daemon starts now and at each login.\n",
    })
}

fn uninstall_files(options: &ServiceUninstallOptions) -> Result<Exit, Fault> {
    let kind = options.kind.unwrap_or(ServiceKind::native());
    // Which program the files name does not matter here.
    let places = places(find_agentd().unwrap_or_else(|_| PathBuf::from("agentd")))?;
    let files = places.files(kind)?;
    let found: Vec<Found> = files.iter().map(look).collect::<Result<_, _>>()?;
    refuse_others(&files, &found, options.force, "remove")?;
    if found.iter().all(|found| *found == Found::Nothing) {
        return output::print("The service is not installed.\n");
    }
    let stop = match kind {
        ServiceKind::Systemd => words(&["systemctl", "--user", "stop", "agentd.socket", "agentd.service"]),
        ServiceKind::Launchd => bootout(),
    };
    if options.now {
        match kind {
            ServiceKind::Systemd => execute(&stop)?,
            // It fails for a job that is not loaded, which is as good.
            ServiceKind::Launchd => drop(quiet(&stop)),
        }
    }
    let mut said = String::new();
    for (file, _) in files.iter().zip(&found).filter(|(_, found)| **found != Found::Nothing) {
        for enabled in enabling_links(file) {
            remove(&enabled)?;
        }
        remove(&file.path)?;
        said.push_str(&format!("removed {}\n", file.path.display()));
    }
    output::print(&said)?;
    let reload = words(&["systemctl", "--user", "daemon-reload"]);
    let after = match kind {
        ServiceKind::Systemd if options.now => return execute(&reload).map(|()| Exit::Answered),
        ServiceKind::Launchd if options.now => return Ok(Exit::Answered),
        ServiceKind::Systemd => vec![stop, reload],
        ServiceKind::Launchd => vec![stop],
    };
    output::print(&format!("What runs of it ends after:\n{}", listed(&after)))
}

/// A file in `agentctl service status --json`.
#[derive(Serialize)]
struct FileReport<'a> {
    path: &'a Path,
    /// `installed`, `outdated`, `changed`, `foreign` or `missing`.
    state: &'static str,
    /// Whether the service manager starts it at login.
    enabled: bool,
}

fn show_files(options: &ServiceStatusOptions) -> Result<Exit, Fault> {
    let kind = options.kind.unwrap_or(ServiceKind::native());
    let files = places(find_agentd()?)?.files(kind)?;
    let mut reports = Vec::new();
    for file in &files {
        let found = look(file)?;
        // launchd loads everything in its folder.
        let enabled = match kind {
            ServiceKind::Systemd => !enabling_links(file).is_empty(),
            ServiceKind::Launchd => found != Found::Nothing,
        };
        reports.push(FileReport { path: &file.path, state: found.as_str(), enabled });
    }
    let is_installed = reports.iter().all(|report| report.state == Found::Current.as_str());
    let printed = if options.json {
        #[derive(Serialize)]
        struct Report<'a> {
            installed: bool,
            files: Vec<FileReport<'a>>,
        }
        output::print_json(&Report { installed: is_installed, files: reports })?
    } else {
        output::print(&reports.iter().map(described).collect::<String>())?
    };
    Ok(if printed == Exit::Answered && !is_installed { Exit::Failed } else { printed })
}

fn described(report: &FileReport<'_>) -> String {
    let about = match report.state {
        "installed" => "installed",
        "missing" => "not installed",
        "outdated" => {
            "installed for another place or by another version; `agentctl service install` updates it"
        }
        "changed" => "installed and changed since",
        _ => "the file of another program",
    };
    let enabled = if report.enabled { ", enabled" } else { "" };
    format!("{}: {about}{enabled}\n", report.path.display())
}

/// The places of this user's service.
fn places(program: PathBuf) -> Result<ServicePlaces, Fault> {
    let endpoint = Endpoint::find()?;
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = absolute("HOME").ok_or_else(|| {
        Fault::new(
            Exit::Failed,
            "Error: HOME is not set to an absolute path, where the files of the service belong.",
        )
    })?;
    Ok(ServicePlaces {
        home,
        config_home: absolute("XDG_CONFIG_HOME"),
        runtime_dir: absolute("XDG_RUNTIME_DIR"),
        program,
        agent_dir: endpoint.agent_dir.clone(),
        socket: endpoint.socket.clone(),
        log: endpoint.log_file(),
    })
}

fn look(file: &UnitFile) -> Result<Found, Fault> {
    file.look().map_err(|error| failed("cannot read", &file.path, &error))
}

fn refuse_others(files: &[UnitFile], found: &[Found], force: bool, what: &str) -> Result<(), Fault> {
    let Some((file, found)) = files.iter().zip(found).find(|(_, found)| !found.is_ours()) else {
        return Ok(());
    };
    if force {
        return Ok(());
    }
    let why = match found {
        Found::Changed => "was changed since agentctl wrote it",
        _ => "was not written by agentctl",
    };
    let path = file.path.display();
    Err(Fault::new(Exit::Failed, format!("Error: {path} {why}. Nothing was done; --force will {what} it.")))
}

fn write(file: &UnitFile) -> Result<(), Fault> {
    let failed = |error: io::Error| failed("cannot write", &file.path, &error);
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(failed)?;
    // A link is replaced, not what it points to: that is another program's.
    if fs::symlink_metadata(&file.path).is_ok_and(|meta| meta.is_symlink()) {
        remove(&file.path)?;
    }
    let contents = file.contents();
    output_file::write(&file.path, Present::Replace, FILE_MODE, |out| out.write_all(contents.as_bytes()))
        .map_err(failed)
}

fn remove(path: &Path) -> Result<(), Fault> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("cannot remove", path, &error)),
        _ => Ok(()),
    }
}

/// The links by which systemd starts a unit at login, of those that exist.
fn enabling_links(file: &UnitFile) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (file.path.parent(), file.path.file_name()) else { return Vec::new() };
    let links = ["default.target.wants", "sockets.target.wants"].map(|wants| folder.join(wants).join(name));
    let is_link = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    links.into_iter().filter(is_link).collect()
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Fault {
    Fault::new(Exit::Failed, format!("Error: {what} {}: {error}", path.display()))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn bootstrap(folder: &Path) -> Vec<String> {
    let file = folder.join(format!("{LAUNCHD_LABEL}.plist"));
    words(&["launchctl", "bootstrap", &launchd_domain(), &file.to_string_lossy()])
}

fn bootout() -> Vec<String> {
    words(&["launchctl", "bootout", &format!("{}/{LAUNCHD_LABEL}", launchd_domain())])
}

fn launchd_domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

/// Commands as lines for a shell.
fn listed(commands: &[Vec<String>]) -> String {
    let line = |command: &Vec<String>| {
        let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
        format!("  {}\n", words.join(" "))
    };
    commands.iter().map(line).collect()
}

/// Runs a command of the service manager; it prints what it has to say.
fn execute(command: &[String]) -> Result<(), Fault> {
    let line = command.join(" ");
    let Some((program, args)) = command.split_first() else { return Ok(()) };
    match Command::new(program).args(args).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Fault::new(Exit::Failed, format!("Error: `{line}` failed ({status})."))),
        Err(error) => Err(Fault::new(Exit::Failed, format!("Error: `{line}` cannot be run: {error}"))),
    }
}

/// Runs a command whose failure means nothing; gives whether it succeeded.
fn quiet(command: &[String]) -> bool {
    let Some((program, args)) = command.split_first() else { return false };
    let run = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    run.is_ok_and(|status| status.success())
}
