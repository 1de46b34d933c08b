//! Packages of npm registries, by npm, pnpm or bun.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_protocol::settings::Settings;
use serde_json::Value;

use super::{
    commands::{Commands, Invocation},
    error::InstallError,
};
use crate::{manifest::Manifest, source::NpmSource, version::Version};

/// How long a registry may take to say which versions there are.
const LOOK_UP: Duration = Duration::from_secs(10);

/// Files that package managers change with an installation, beside `node_modules`.
const RECORDS: [&str; 5] = ["package.json", "package-lock.json", "pnpm-lock.yaml", "bun.lock", "bun.lockb"];

const ADVICE: &str =
    "install Node.js, which brings npm, or name another program as npmCommand in settings.json";

/// A package manager, as the setting `npmCommand` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Npm {
    program: String,
    /// Arguments before those of the package manager.
    args: Vec<String>,
    manager: Manager,
}

/// The package managers whose flags are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Npm,
    Pnpm,
    Bun,
    Other,
}

impl Manager {
    fn named(command: &str) -> Self {
        let name = Path::new(command).file_name().unwrap_or_default().to_string_lossy();
        match &*name {
            "npm" => Self::Npm,
            "pnpm" => Self::Pnpm,
            "bun" => Self::Bun,
            _ => Self::Other,
        }
    }
}

/// Flags for an installation in a repository, by package manager.
const IN_REPOSITORY: [(Manager, &[&str]); 4] = [
    (Manager::Npm, &["install", "--omit=dev", "--legacy-peer-deps", "--no-audit", "--no-fund"]),
    (
        Manager::Pnpm,
        &[
            "install",
            "--prod",
            "--config.auto-install-peers=false",
            "--config.strict-peer-dependencies=false",
            "--config.strict-dep-builds=false",
        ],
    ),
    (Manager::Bun, &["install", "--omit=dev", "--omit=peer"]),
    (Manager::Other, &["install"]),
];

impl Npm {
    /// The package manager of these settings.
    ///
    /// # Errors
    /// [`InstallError::NpmCommand`] for a list without a program, or with several package managers.
    pub(crate) fn of(settings: &Settings) -> Result<Self, InstallError> {
        let fault = |problem: &str| InstallError::NpmCommand { problem: problem.to_owned() };
        let Some((program, args)) = settings.npm_command.as_deref().and_then(<[String]>::split_first) else {
            return Ok(Self { program: "npm".to_owned(), args: Vec::new(), manager: Manager::Npm });
        };
        if program.is_empty() {
            return Err(fault("its first item must be a program"));
        }
        let behind = args.iter().rposition(|arg| arg == "--").map(|at| args.get(at + 1));
        let manager = match (behind, Manager::named(program)) {
            (Some(wrapped), of_program) => wrapped.map_or(of_program, |wrapped| Manager::named(wrapped)),
            (None, Manager::Other) => {
                let mut wrapped =
                    args.iter().map(|arg| Manager::named(arg)).filter(|it| *it != Manager::Other);
                let first = wrapped.next();
                if wrapped.any(|other| Some(other) != first) {
                    return Err(fault("it names several package managers"));
                }
                first.unwrap_or(Manager::Other)
            }
            (None, known) => known,
        };
        Ok(Self { program: program.clone(), args: args.to_vec(), manager })
    }

    fn invocation(&self, args: Vec<String>, cwd: Option<PathBuf>) -> Invocation {
        let args = self.args.iter().cloned().chain(args).collect();
        Invocation { program: self.program.clone(), args, cwd, advice: ADVICE }
    }

    /// Installs packages in a folder of packages, which is made where it is not there. A failure leaves the folder as it was.
    pub(crate) async fn install(
        &self,
        commands: &Commands,
        root: &Path,
        specs: &[(&NpmSource, String)],
    ) -> Result<(), InstallError> {
        let folder = PackageRoot::open(root, specs.iter().map(|(source, _)| source.name.as_str()))?;
        // npm writes wrong paths into its lock file where the folder is behind a link.
        let place = crate::folders::canonical(root).display().to_string();
        let mut args = vec!["install".to_owned()];
        args.extend(specs.iter().map(|(_, spec)| spec.clone()));
        let flags: &[&str] = match self.manager {
            Manager::Bun => &["--omit=peer"],
            Manager::Pnpm => &[
                "--config.auto-install-peers=false",
                "--config.strict-peer-dependencies=false",
                "--config.strict-dep-builds=false",
            ],
            Manager::Npm | Manager::Other => &["--legacy-peer-deps", "--no-audit", "--no-fund"],
        };
        args.extend([if self.manager == Manager::Bun { "--cwd" } else { "--prefix" }.to_owned(), place]);
        args.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let command = format!("{} install", self.program);
        commands.run(&self.invocation(args, Some(root.to_owned())), None).await?;
        let missing = specs.iter().find(|(source, _)| !root.join("node_modules").join(&source.name).exists());
        if let Some((source, _)) = missing {
            return Err(InstallError::NotThere { command, name: source.name.clone() });
        }
        folder.keep();
        Ok(())
    }

    /// Takes a package out of a folder of packages.
    pub(crate) async fn uninstall(
        &self,
        commands: &Commands,
        root: &Path,
        name: &str,
    ) -> Result<(), InstallError> {
        let place = crate::folders::canonical(root).display().to_string();
        let mut args = vec!["uninstall".to_owned(), name.to_owned()];
        args.extend([if self.manager == Manager::Bun { "--cwd" } else { "--prefix" }.to_owned(), place]);
        if matches!(self.manager, Manager::Npm | Manager::Other) {
            args.extend(["--legacy-peer-deps", "--no-audit", "--no-fund"].map(str::to_owned));
        }
        commands.run(&self.invocation(args, Some(root.to_owned())), None).await.map(|_| ())
    }

    /// Installs what a repository depends on, if it has a `package.json`.
    pub(crate) async fn install_dependencies(
        &self,
        commands: &Commands,
        repository: &Path,
    ) -> Result<(), InstallError> {
        if !repository.join("package.json").exists() {
            return Ok(());
        }
        let flags = IN_REPOSITORY.iter().find(|(manager, _)| *manager == self.manager);
        let args = flags.map(|(_, flags)| flags.iter().map(|flag| (*flag).to_owned()).collect());
        let invocation = self.invocation(args.unwrap_or_default(), Some(repository.to_owned()));
        commands.run(&invocation, None).await.map(|_| ())
    }

    /// The newest version that a registry has of a package, within its range.
    pub(crate) async fn newest(&self, commands: &Commands, source: &NpmSource) -> Option<Version> {
        let spec = if source.range.is_some() { &source.spec } else { &source.name };
        let args = ["view", spec, "version", "--json"].map(str::to_owned).to_vec();
        let said = commands.run(&self.invocation(args, None), Some(LOOK_UP)).await;
        let said = said.inspect_err(|error| tracing::debug!(%error, "the registry was not asked")).ok()?;
        match serde_json::from_str(said.trim()).ok()? {
            Value::String(version) => Version::parse(&version),
            Value::Array(versions) => versions.iter().filter_map(|it| Version::parse(it.as_str()?)).max(),
            _ => None,
        }
    }
}

/// The version of an installed package.
pub(crate) fn installed_version(package: &Path) -> Option<String> {
    Manifest::read(package)?.version
}

/// A folder of packages during an installation. Dropped before [`Self::keep`], it is as it was before.
struct PackageRoot<'a> {
    root: &'a Path,
    /// What is made, with the folders above it; removed again after a failure.
    made: Option<PathBuf>,
    /// The records before; `None` for those that were not there.
    records: Vec<(PathBuf, Option<Vec<u8>>)>,
    /// The folders of packages that were not there.
    new: Vec<PathBuf>,
    done: bool,
}

impl<'a> PackageRoot<'a> {
    fn open(root: &'a Path, names: impl Iterator<Item = &'a str>) -> Result<Self, InstallError> {
        let made = root.ancestors().take_while(|folder| !folder.exists()).last().map(Path::to_owned);
        fs::create_dir_all(root).map_err(InstallError::io(root))?;
        let mut folder = Self { root, made, records: Vec::new(), new: Vec::new(), done: false };
        for name in RECORDS {
            let path = root.join(name);
            let before = match fs::read(&path) {
                Ok(bytes) => Some(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(InstallError::Io { path, source: error }),
            };
            folder.records.push((path, before));
        }
        let places = names.map(|name| root.join("node_modules").join(name));
        folder.new = places.filter(|path| !path.exists()).collect();
        write_ignore_file(root)?;
        let package = root.join("package.json");
        if !package.exists() {
            let text = "{\n  \"name\": \"pi-extensions\",\n  \"private\": true\n}\n";
            fs::write(&package, text).map_err(InstallError::io(&package))?;
        }
        Ok(folder)
    }

    fn keep(mut self) {
        self.done = true;
    }

    fn restore(&self) -> io::Result<()> {
        if let Some(made) = &self.made {
            return fs::remove_dir_all(made);
        }
        for (path, before) in &self.records {
            match before {
                Some(bytes) if fs::read(path).ok().as_ref() != Some(bytes) => fs::write(path, bytes)?,
                Some(_) => {}
                None => remove_if_there(path)?,
            }
        }
        for package in self.new.iter().filter(|package| package.exists()) {
            fs::remove_dir_all(package)?;
            // The folder of a scope, when nothing else is in it.
            if let Some(scope) = package.parent().filter(|folder| !folder.ends_with("node_modules")) {
                let _ = fs::remove_dir(scope);
            }
        }
        Ok(())
    }
}

impl Drop for PackageRoot<'_> {
    fn drop(&mut self) {
        if !self.done
            && let Err(error) = self.restore()
        {
            tracing::warn!(%error, root = %self.root.display(), "a failed installation could not be taken back");
        }
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Keeps a folder of packages out of a repository around it.
pub(crate) fn write_ignore_file(folder: &Path) -> Result<(), InstallError> {
    let path = folder.join(".gitignore");
    if path.exists() {
        return Ok(());
    }
    fs::write(&path, "*\n!.gitignore\n").map_err(InstallError::io(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npm(command: &[&str]) -> Result<Npm, InstallError> {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Npm::of(&Settings { npm_command: Some(command), ..Settings::default() })
    }

    #[test]
    fn package_managers_are_known_by_their_names() {
        let check = |command: &[&str], manager: Manager| {
            assert_eq!(npm(command).unwrap().manager, manager, "{command:?}")
        };
        check(&[], Manager::Npm);
        check(&["/usr/bin/pnpm"], Manager::Pnpm);
        check(&["mise", "exec", "node@20", "--", "npm"], Manager::Npm);
        check(&["corepack", "pnpm"], Manager::Pnpm);
        check(&["npm", "--", "bun"], Manager::Bun);
        check(&["yarn"], Manager::Other);
        assert_eq!(Npm::of(&Settings::default()).unwrap(), npm(&[]).unwrap());
        for (wrong, says) in [(&[""][..], "must be a program"), (&["x", "npm", "pnpm"], "several")] {
            let error = npm(wrong).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_failed_installation_leaves_the_folder_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("a/npm");
        drop(PackageRoot::open(&root, std::iter::once("x")).unwrap());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);

        PackageRoot::open(&root, std::iter::once("x")).unwrap().keep();
        fs::create_dir_all(root.join("node_modules/x")).unwrap();
        let before = fs::read(root.join("package.json")).unwrap();
        let failing = PackageRoot::open(&root, ["x", "@s/y"].into_iter()).unwrap();
        fs::write(root.join("package.json"), "{}").unwrap();
        fs::write(root.join("package-lock.json"), "{}").unwrap();
        fs::create_dir_all(root.join("node_modules/@s/y")).unwrap();
        drop(failing);
        assert_eq!(fs::read(root.join("package.json")).unwrap(), before);
        assert!(!root.join("package-lock.json").exists() && !root.join("node_modules/@s").exists());
        assert!(root.join("node_modules/x").exists() && root.join(".gitignore").exists());
    }
}
