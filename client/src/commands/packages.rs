//! `agentctl install`, `remove`, `list` and `update`: agentd manages packages.

use std::io;

use agentd_protocol::{
    package_request::{ListedPackage, PackageAnswer, PackageRequest, PackageTask, UpdatedPackage},
    resources::SourceScope,
};

use super::ask_agentd;
use crate::{
    cli::{InstallOptions, ListOptions, PackageOptions, UninstallOptions, UpdateOptions},
    exit::{Exit, Fault, conclude, print_stderr},
    output,
    render::one_line,
};

/// Installs a package.
pub(crate) fn install(options: &InstallOptions) -> Exit {
    let PackageOptions { source, local, approve } = options.package.clone();
    let task = PackageTask::Install { source: source.clone(), local };
    conclude(asked(task, approve, |answer| match answer {
        PackageAnswer::Settings { path, changed, used } => {
            if !used {
                print_stderr(
                    "Note: the project's settings count once the project is trusted: agentctl prompt asks, and --approve says so.",
                );
            }
            let named = if changed { "added to" } else { "already in" };
            output::print(&format!("Installed {}, {named} {path}.\n", one_line(&source)))
        }
        other => Err(unexpected(&other)),
    }))
}

/// Removes a package.
pub(crate) fn remove(options: &UninstallOptions) -> Exit {
    let PackageOptions { source, local, approve } = options.package.clone();
    let task = PackageTask::Remove { source: source.clone(), local };
    conclude(asked(task, approve, |answer| match answer {
        PackageAnswer::Settings { path, .. } => {
            output::print(&format!("Removed {} from {path}.\n", one_line(&source)))
        }
        other => Err(unexpected(&other)),
    }))
}

/// Lists the packages of the settings.
pub(crate) fn list(options: &ListOptions) -> Exit {
    conclude(asked(PackageTask::List, options.approve, |answer| match answer {
        PackageAnswer::Packages { packages } if options.json => output::print_json(&packages),
        PackageAnswer::Packages { packages } => output::print(&report(&packages)),
        other => Err(unexpected(&other)),
    }))
}

/// Brings packages to their newest versions.
pub(crate) fn update(options: &UpdateOptions) -> Exit {
    let task = PackageTask::Update { source: options.source.clone() };
    conclude(asked(task, options.approve, |answer| match answer {
        PackageAnswer::Updated { offline: true, .. } => {
            output::print("Skipped package updates, since PI_OFFLINE is set.\n")
        }
        PackageAnswer::Updated { updated, .. } => output::print(&updates(&updated)),
        other => Err(unexpected(&other)),
    }))
}

/// Has agentd do the task, shows how it goes on, and passes on the result.
fn asked(
    task: PackageTask,
    approve: bool,
    tell: impl FnOnce(PackageAnswer) -> Result<Exit, Fault>,
) -> Result<Exit, Fault> {
    let request = PackageRequest { task, approve };
    let mut result = None;
    let mut take = |answer: PackageAnswer| {
        match answer {
            PackageAnswer::Progress { message } => print_stderr(&one_line(&message)),
            answer => result = Some(answer),
        }
        Ok::<(), io::Error>(())
    };
    ask_agentd::lines("--packages", &request, Exit::Failed, &mut take)?.map_err(|error| {
        Fault::new(Exit::NoDaemon, format!("agentctl: agentd's answer cannot be read: {error}"))
    })?;
    tell(result.ok_or_else(|| Fault::new(Exit::NoDaemon, "agentctl: agentd gave no answer"))?)
}

fn unexpected(answer: &PackageAnswer) -> Fault {
    Fault::new(Exit::NoDaemon, format!("agentctl: agentd answered something else: {answer:?}"))
}

/// The packages below whose they are, each with its place.
fn report(packages: &[ListedPackage]) -> String {
    if packages.is_empty() {
        return "No packages installed. `agentctl install` adds one.\n".to_owned();
    }
    let lines = |scope: SourceScope, title: &str| {
        let of_scope: Vec<_> = packages.iter().filter(|package| package.scope == scope).collect();
        let title = if of_scope.is_empty() { String::new() } else { format!("{title}\n") };
        let line = |package: &&ListedPackage| {
            let filtered = if package.filtered { " (filtered)" } else { "" };
            let place = package.installed_path.as_deref().map_or("not installed".to_owned(), one_line);
            format!("  {}{filtered}\n    {place}\n", one_line(&package.source))
        };
        title + &of_scope.iter().map(line).collect::<String>()
    };
    lines(SourceScope::User, "User packages:") + &lines(SourceScope::Project, "Project packages:")
}

/// A line for each package that is another one now.
fn updates(updated: &[UpdatedPackage]) -> String {
    if updated.is_empty() {
        return "Packages are already up to date.\n".to_owned();
    }
    // Of a commit, the beginning names it.
    let shown = |state: &Option<String>| match state {
        None => "(none)".to_owned(),
        Some(commit) if commit.len() >= 40 => commit.chars().take(7).collect(),
        Some(version) => one_line(version),
    };
    let line = |package: &UpdatedPackage| {
        let of_project = if package.scope == SourceScope::Project { " (project)" } else { "" };
        let (from, to) = (shown(&package.from), shown(&package.to));
        format!("Updated {}{of_project} {from} -> {to}\n", one_line(&package.source))
    };
    updated.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_stand_below_whose_they_are() {
        let package = |source: &str, scope, filtered, path: Option<&str>| ListedPackage {
            source: source.into(),
            scope,
            filtered,
            installed_path: path.map(str::to_owned),
        };
        let packages = [
            package("npm:a", SourceScope::User, false, Some("/a/npm/node_modules/a")),
            package("./b\n", SourceScope::Project, true, None),
        ];
        assert_eq!(
            report(&packages),
            "User packages:\n  npm:a\n    /a/npm/node_modules/a\nProject packages:\n  ./b  (filtered)\n    not installed\n"
        );
        assert!(report(&[]).starts_with("No packages installed."));
    }

    #[test]
    fn updates_say_from_where_to_where() {
        let package = |from: Option<&str>, to: &str| UpdatedPackage {
            source: "s".into(),
            scope: SourceScope::Project,
            from: from.map(str::to_owned),
            to: Some(to.to_owned()),
        };
        let commit = "0123456789012345678901234567890123456789";
        assert_eq!(
            updates(&[package(Some("1.0.0"), "1.1.0"), package(None, commit)]),
            "Updated s (project) 1.0.0 -> 1.1.0\nUpdated s (project) (none) -> 0123456\n"
        );
    }
}
