//! The programs of a release: built, or taken as they are; without symbols.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::outcome::{About as _, Outcome, fail};

use super::elf::{self, LibC, Machine, Needs};

/// The packages of the programs.
pub(crate) const PACKAGES: [&str; 3] = ["agentd", "agentctl", "agentd-syntax-program"];

/// The programs for one platform.
pub(crate) struct Programs {
    pub(crate) agentd: Vec<u8>,
    pub(crate) agentctl: Vec<u8>,
    /// `agentd-syntax`, which agentd looks for beside itself.
    pub(crate) syntax: Vec<u8>,
    pub(crate) needs: Needs,
    /// Their folder, from which they can be run.
    pub(crate) folder: PathBuf,
}

impl Programs {
    /// Their target as Rust names it.
    pub(crate) fn target(&self) -> &'static str {
        match (self.needs.machine, self.needs.libc) {
            (Machine::X86_64, LibC::Glibc(_)) => "x86_64-unknown-linux-gnu",
            (Machine::X86_64, LibC::Static) => "x86_64-unknown-linux-musl",
            (Machine::Aarch64, LibC::Glibc(_)) => "aarch64-unknown-linux-gnu",
            (Machine::Aarch64, LibC::Static) => "aarch64-unknown-linux-musl",
        }
    }

    /// Names and contents.
    pub(crate) fn each(&self) -> [(&'static str, &[u8]); 3] {
        [
            ("agentctl", self.agentctl.as_slice()),
            ("agentd", self.agentd.as_slice()),
            ("agentd-syntax", self.syntax.as_slice()),
        ]
    }

    /// Whether they can be run here.
    pub(crate) fn run_here(&self) -> bool {
        match self.needs.machine {
            Machine::X86_64 => cfg!(target_arch = "x86_64"),
            Machine::Aarch64 => cfg!(target_arch = "aarch64"),
        }
    }

    /// What one of them prints.
    pub(crate) fn output(&self, program: &str, args: &[&str]) -> Outcome<Vec<u8>> {
        let path = self.folder.join(program);
        let output = Command::new(&path).args(args).output().at(&path)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return fail(format!("{program} {}: {}: {}", args.join(" "), output.status, said.trim()));
        }
        Ok(output.stdout)
    }
}

/// The cargo that runs this task.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Reads the programs in a folder. Copies without symbols are made in `work`.
///
/// # Errors
/// When one is missing, or is no program that packages can be made of.
pub(crate) fn read(folder: &Path, work: &Path) -> Outcome<Programs> {
    let folder = folder.canonicalize().at(folder)?;
    let (agentd, needs) = read_one(&folder.join("agentd"), work)?;
    let (agentctl, other) = read_one(&folder.join("agentctl"), work)?;
    let (syntax, third) = read_one(&folder.join("agentd-syntax"), work)?;
    let needs = needs.with(&other).at(&folder)?.with(&third).at(&folder)?;
    Ok(Programs { agentd, agentctl, syntax, needs, folder })
}

fn read_one(path: &Path, work: &Path) -> Outcome<(Vec<u8>, Needs)> {
    let content = fs::read(path).at(path)?;
    let needs = elf::needs(&content).at(path)?;
    if !needs.has_symbols {
        return Ok((content, needs));
    }
    let stripped = work.join(path.file_name().unwrap_or_default());
    run(Command::new("strip").arg("-o").arg(&stripped).arg(path))?;
    let content = fs::read(&stripped).at(&stripped)?;
    fs::remove_file(&stripped).at(&stripped)?;
    let needs = elf::needs(&content).at(path)?;
    Ok((content, needs))
}

/// Builds the programs as they are released, and returns their folder.
///
/// The build has a target folder of its own: it maps the paths of this machine to plain names, so that the programs do not tell where they
/// were built, and a build elsewhere gives the same bytes.
///
/// # Errors
/// When the build fails.
pub(crate) fn build(root: &Path, target_folder: &Path) -> Outcome<PathBuf> {
    let target_folder = target_folder.join("dist-build");
    let mut command = Command::new(cargo());
    command.args(["build", "--release", "--locked"]);
    command.args(PACKAGES.iter().flat_map(|program| ["--package", program]));
    command.arg("--target-dir").arg(&target_folder).current_dir(root);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags(root)?).env_remove("RUSTFLAGS");
    run(&mut command)?;
    Ok(target_folder.join("release"))
}

/// The flags of the environment, then those of the repository and those that map paths, as `CARGO_ENCODED_RUSTFLAGS` separates them.
fn flags(root: &Path) -> Outcome<OsString> {
    let separator = OsStr::new("\u{1f}");
    let mut flags = env::var_os("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if flags.is_empty()
        && let Ok(plain) = env::var("RUSTFLAGS")
    {
        flags = plain.split_whitespace().collect::<Vec<_>>().join("\u{1f}").into();
    }
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let Some(cargo_home) = cargo_home else {
        return fail("neither CARGO_HOME nor HOME is set");
    };
    // As in .cargo/config.toml, in whose place these flags come.
    if !flags.is_empty() {
        flags.push(separator);
    }
    flags.push("-Csymbol-mangling-version=v0");
    for (from, to) in [(root, "/agentd"), (cargo_home.as_path(), "/cargo")] {
        flags.push(separator);
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push("=");
        flags.push(to);
    }
    Ok(flags)
}

fn run(command: &mut Command) -> Outcome<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().about(&name)?;
    if status.success() { Ok(()) } else { fail(format!("{name} failed: {status}")) }
}
