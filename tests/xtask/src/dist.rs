//! `cargo xtask dist`: the packages of a release, in one folder with their checksums.

mod archive;
mod container;
mod deb;
mod dependencies;
mod elf;
mod hash;
mod licences;
mod npm;
mod output;
mod programs;
mod release;
mod sbom;
mod tarball;
mod wheel;

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use clap::{Args, ValueEnum};

use crate::outcome::{About as _, Failure, Outcome, fail};

/// Makes the packages of a release in target/dist, with their checksums.
///
/// The same programs and the same commit give the same bytes: times are those of SOURCE_DATE_EPOCH, or of the last commit.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  cargo xtask dist                                        build, and make all of them\n  \
    cargo xtask dist tar deb                                only these\n  \
    cargo xtask dist --bin-dir target/debug --out /tmp/x    of programs that are built already\n  \
    cargo xtask dist --bin-dir x64 --bin-dir arm64          for two processors; one pair must run here"
)]
pub(crate) struct Options {
    /// What to make; without any, everything
    kinds: Vec<Kind>,
    /// A folder with agentd, agentctl and agentd-syntax for one platform, instead of a release build; repeatable
    #[arg(long, value_name = "DIR")]
    bin_dir: Vec<PathBuf>,
    /// Where the packages go; what an earlier run put there is replaced [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The name of the packages for npm and PyPI; on npm it may have a scope of yours, such as @me/agentd
    #[arg(long, value_name = "NAME", default_value = "agentd-cli")]
    package_name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A tar archive with the programs, manual pages, completions and licences; and install.sh
    Tar,
    /// A Debian package
    Deb,
    /// A package for npm, and one with the programs for each platform
    Npm,
    /// A wheel for pip
    Wheel,
    /// A Containerfile, which needs the Debian package beside it
    Container,
    /// A bill of materials (CycloneDX)
    Sbom,
}

/// Makes the packages, and lists them on stdout.
pub(crate) fn run(options: &Options) -> Outcome<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().at(&root)?;
    let makes = |kind| options.kinds.is_empty() || options.kinds.contains(&kind);
    let target_folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let out = options.out.clone().unwrap_or_else(|| target_folder.join("dist"));
    let work = tempfile::tempdir().about("a temporary folder")?;
    let epoch = epoch(&root)?;

    let folders = match options.bin_dir.as_slice() {
        [] => vec![programs::build(&root, &target_folder)?],
        folders => folders.to_vec(),
    };
    let mut releases = Vec::new();
    for folder in &folders {
        releases.push(programs::read(folder, work.path())?);
    }
    let releases = release::of(&root, epoch, &options.package_name, releases, work.path())?;

    let mut packages = Vec::new();
    for release in &releases {
        if makes(Kind::Tar) {
            packages.push(tarball::make(release)?);
        }
        // A Containerfile installs the package.
        if makes(Kind::Deb) || makes(Kind::Container) {
            packages.push(deb::make(release)?);
        }
        if makes(Kind::Npm) {
            packages.push(npm::platform(release)?);
        }
        if makes(Kind::Wheel) {
            packages.push(wheel::make(release)?);
        }
        if makes(Kind::Sbom) {
            let document = sbom::document(&release.version, epoch, &release.crates);
            let text = serde_json::to_string_pretty(&document).about("the bill of materials")?;
            let name = format!("agentd-{}-{}.cdx.json", release.version, release.programs.target());
            packages.push((name, format!("{text}\n").into_bytes()));
        }
    }
    if makes(Kind::Tar) {
        packages.push(("install.sh".to_owned(), tarball::INSTALL_SCRIPT.into()));
    }
    if makes(Kind::Npm) {
        packages.push(npm::launcher(&releases)?);
    }
    if makes(Kind::Container) {
        packages.push(("Containerfile".to_owned(), container::recipe(&releases)?.into_bytes()));
    }
    let listed = output::write(&out, packages)?;
    let mut stdout = std::io::stdout().lock();
    for line in listed {
        writeln!(stdout, "{line}").about("stdout")?;
    }
    Ok(())
}

/// The time of all files: `SOURCE_DATE_EPOCH`, else that of the last commit, else the first day of 1980, as a source archive has no
/// history.
fn epoch(root: &Path) -> Outcome<u64> {
    if let Ok(text) = env::var("SOURCE_DATE_EPOCH") {
        return text
            .parse()
            .map_err(|_| Failure(format!("SOURCE_DATE_EPOCH is no number of seconds: {text}")));
    }
    const START_OF_1980: u64 = 315_532_800;
    if !root.join(".git").exists() {
        return Ok(START_OF_1980);
    }
    let output = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root)
        .output()
        .about("git, for the time of the last commit")?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match text.parse() {
        Ok(epoch) if output.status.success() => Ok(epoch),
        _ => fail("git does not tell the time of the last commit: set SOURCE_DATE_EPOCH"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: super::Options,
    }

    #[test]
    fn kinds_and_folders_are_lists() {
        let line = Line::parse_from(["dist", "tar", "deb", "--bin-dir", "a", "--bin-dir", "b"]);
        assert_eq!(line.options.kinds, [super::Kind::Tar, super::Kind::Deb]);
        assert_eq!(line.options.bin_dir.len(), 2);
        assert!(Line::try_parse_from(["dist", "rpm"]).is_err());
    }
}
