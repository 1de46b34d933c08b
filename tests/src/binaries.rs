//! The programs under test. A test run of the workspace does not build the binaries of other packages, so this module
//! does.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// A variable that names a folder with built programs to test instead.
const FOLDER_VARIABLE: &str = "AGENTD_E2E_BIN_DIR";

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// Tests the programs in `folder`, despite the variable. Has to be called before any path is requested.
pub fn choose(folder: PathBuf) {
    assert!(FOLDER.set(folder).is_ok(), "the programs under test were chosen before");
}

/// The path of `agentd`.
pub fn agentd() -> PathBuf {
    folder().join("agentd")
}

/// The path of `agentctl`, with `agentd` beside it.
pub fn agentctl() -> PathBuf {
    folder().join("agentctl")
}

/// Copies a program that is then run from there. By a process of its own: a file that this process has open for writing is inherited by
/// the processes that other tests start meanwhile, and cannot be run until they have let go of it.
///
/// # Panics
/// When it cannot be copied.
pub fn copy(program: &Path, to: &Path) {
    let done = Command::new("cp").arg(program).arg(to).status().expect("cp runs");
    assert!(done.success(), "{} could not be copied to {}", program.display(), to.display());
}

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the workspace folder")
}

/// The folder of the programs, which are built on first use.
fn folder() -> &'static Path {
    FOLDER.get_or_init(|| env::var_os(FOLDER_VARIABLE).map_or_else(build, PathBuf::from))
}

/// Builds the programs into the target folder and profile of this test.
fn build() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    // <target>/<profile>/deps/<test>, or <target>/<profile>/<benchmark>
    let folder = test.parent().expect("a program has a folder");
    let folder = if folder.ends_with("deps") { folder.parent() } else { Some(folder) };
    let folder = folder.expect("a test runs from a target folder").to_owned();
    let target = folder.parent().expect("a profile has a target folder above it");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let run = |offline: &[&str]| {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        variables_of_this_package().for_each(|name| {
            cargo.env_remove(name);
        });
        cargo
            .args(["build", "--quiet", "--package", "agentd", "--package", "agentctl"])
            .args(["--package", "agentd-syntax-program", "--profile", profile])
            .arg("--target-dir")
            .arg(target)
            .args(offline)
            .current_dir(workspace())
            .output()
            .expect("cargo can be run")
    };
    // The registry is used only when something is missing.
    if !run(&["--offline"]).status.success() {
        let built = run(&[]);
        assert!(
            built.status.success(),
            "the programs under test cannot be built:\n{}",
            String::from_utf8_lossy(&built.stderr)
        );
    }
    folder
}

/// The variables in which cargo tells the tests of a package about it. Another cargo must not get them: build scripts, ring's among them, run again
/// where one has changed, and nearly all crates would be built anew, now and at the next build from a shell.
fn variables_of_this_package() -> impl Iterator<Item = OsString> {
    let is_one = |name: &OsString| {
        name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "OUT_DIR"
        })
    };
    env::vars_os().map(|(name, _)| name).filter(is_one)
}
