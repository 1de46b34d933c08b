//! The packages for npm: one with the programs for each platform, and one that is installed by name, depends on all of these and starts
//! the programs of the one that npm took. Nothing is run at installation.

use serde_json::{Map, Value, json};

use crate::outcome::{self, About as _, Outcome, fail};

use super::{
    archive::{Files, gzip},
    elf::{LibC, Machine},
    release::Release,
};

/// The Node script behind both commands.
const LAUNCHER: &str = include_str!("../../files/launcher.js");

/// The package with the programs of a platform.
///
/// # Errors
/// When a file that goes into it cannot be read.
pub(crate) fn platform(release: &Release) -> Outcome<(String, Vec<u8>)> {
    let name = platform_name(release);
    let mut manifest = common(release, &name);
    manifest.insert("description".to_owned(), json!("The programs of agentd for one platform"));
    manifest.insert("os".to_owned(), json!(["linux"]));
    manifest.insert("cpu".to_owned(), json!([cpu(release)]));
    if matches!(release.programs.needs.libc, LibC::Glibc(_)) {
        manifest.insert("libc".to_owned(), json!(["glibc"]));
    }
    // Without it yarn would leave the programs in an archive, where they cannot be run.
    manifest.insert("preferUnplugged".to_owned(), json!(true));
    let mut files = release.licences()?;
    for (program, content) in release.programs.each() {
        files.add_program(format!("bin/{program}"), content);
    }
    let readme = format!(
        "# {name}\n\nThe programs of agentd for {}. Install `{}` instead, which depends on this package.\n",
        release.programs.target(),
        release.package_name
    );
    files.add("README.md", readme);
    packed(release, &name, &Value::Object(manifest), files)
}

/// The package that is installed by name.
///
/// # Errors
/// When there is no release, or a file that goes into the package cannot be read.
pub(crate) fn launcher(releases: &[Release]) -> Outcome<(String, Vec<u8>)> {
    let Some(release) = releases.first() else {
        return fail("no programs");
    };
    let mut manifest = common(release, &release.package_name);
    manifest.insert(
        "description".to_owned(),
        json!("agentd, a coding agent without a screen, and agentctl, its command line"),
    );
    manifest.insert("bin".to_owned(), json!({"agentctl": "bin/agentctl.js", "agentd": "bin/agentd.js"}));
    let pages: Vec<String> = release.pages.keys().map(|name| format!("man/{name}.1")).collect();
    manifest.insert("man".to_owned(), json!(pages));
    manifest.insert("engines".to_owned(), json!({"node": ">=18"}));
    let platforms: Map<String, Value> =
        releases.iter().map(|release| (platform_name(release), json!(release.version))).collect();
    manifest.insert("optionalDependencies".to_owned(), Value::Object(platforms));
    let mut files = Files::default();
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.add(name, release.licence(name)?);
    }
    files.add("README.md", outcome::read(&release.root.join("README.md"))?);
    for (name, page) in release.pages.iter() {
        files.add(format!("man/{name}.1"), page.clone());
    }
    files.add("lib/launcher.js", LAUNCHER);
    for program in ["agentctl", "agentd"] {
        let script = format!(
            "#!/usr/bin/env node\n'use strict';\nrequire('../lib/launcher.js').start('{program}');\n"
        );
        files.add_program(format!("bin/{program}.js"), script);
    }
    packed(release, &release.package_name, &Value::Object(manifest), files)
}

fn common(release: &Release, name: &str) -> Map<String, Value> {
    let mut manifest = Map::new();
    manifest.insert("name".to_owned(), json!(name));
    manifest.insert("version".to_owned(), json!(release.version));
    manifest.insert("license".to_owned(), json!("(MIT OR Apache-2.0)"));
    manifest
}

fn cpu(release: &Release) -> &'static str {
    match release.programs.needs.machine {
        Machine::X86_64 => "x64",
        Machine::Aarch64 => "arm64",
    }
}

fn platform_name(release: &Release) -> String {
    let libc = match release.programs.needs.libc {
        LibC::Glibc(_) => "",
        LibC::Static => "-static",
    };
    format!("{}-linux-{}{libc}", release.package_name, cpu(release))
}

/// The archive, named and laid out as `npm pack` does.
fn packed(release: &Release, name: &str, manifest: &Value, mut files: Files) -> Outcome<(String, Vec<u8>)> {
    let text = serde_json::to_string_pretty(manifest).about("package.json")?;
    files.add("package.json", format!("{text}\n"));
    let archive = gzip(&files.tar(release.epoch, "package/", false)?)?;
    Ok((format!("{}-{}.tgz", name.trim_start_matches('@').replace('/', "-"), release.version), archive))
}
