//! The wheel for pip: both programs as scripts, which pip puts into `bin` of an environment.
//!
//! Written here, since builders of wheels take one program per package.

use crate::outcome::{self, Outcome};

use super::{
    archive::Files,
    elf::{LibC, Machine, Needs},
    hash,
    release::Release,
};

/// The name of the file and its content.
///
/// # Errors
/// When a file that goes into it cannot be read.
pub(crate) fn make(release: &Release) -> Outcome<(String, Vec<u8>)> {
    // As names are normalised in files of packages.
    let name = release.package_name.trim_start_matches('@').replace(['-', '.', '/'], "_").to_lowercase();
    let begin = format!("{name}-{}", release.version);
    let tags = tags(&release.programs.needs);
    let mut files = Files::default();
    for (program, content) in release.programs.each() {
        files.add_program(format!("{begin}.data/scripts/{program}"), content);
    }
    files.add_below(&format!("{begin}.data/data/share"), &release.share());
    let information = format!("{begin}.dist-info");
    files.add_below(&format!("{information}/licenses"), &release.licences()?);
    files.add(format!("{information}/METADATA"), metadata(release)?);
    files.add(format!("{information}/WHEEL"), description(&tags));
    let record: String = files
        .iter()
        .map(|(path, content)| {
            format!("{path},sha256={},{}\n", hash::sha256_of_record(content), content.len())
        })
        .collect();
    files.add(format!("{information}/RECORD"), format!("{record}{information}/RECORD,,\n"));
    Ok((format!("{begin}-py3-none-{}.whl", tags.join(".")), files.zip(release.epoch)?))
}

/// The platforms that the programs run on.
fn tags(needs: &Needs) -> Vec<String> {
    let machine = match needs.machine {
        Machine::X86_64 => "x86_64",
        Machine::Aarch64 => "aarch64",
    };
    match needs.libc {
        // pip knows no older one than 2.5 (2.17 for ARM), and none of these programs could be that old.
        LibC::Glibc(minor) => vec![format!("manylinux_2_{}_{machine}", minor.max(17))],
        LibC::Static => vec![format!("manylinux_2_17_{machine}"), format!("musllinux_1_1_{machine}")],
    }
}

fn description(tags: &[String]) -> String {
    let lines: String = tags.iter().map(|tag| format!("Tag: py3-none-{tag}\n")).collect();
    format!("Wheel-Version: 1.0\nGenerator: agentd-xtask\nRoot-Is-Purelib: false\n{lines}")
}

fn metadata(release: &Release) -> Outcome<String> {
    let licences: String =
        release.licences()?.iter().map(|(path, _)| format!("License-File: {path}\n")).collect();
    let readme = String::from_utf8_lossy(&outcome::read(&release.root.join("README.md"))?).into_owned();
    Ok(format!(
        "Metadata-Version: 2.4\nName: {}\nVersion: {}\nSummary: agentd, a coding agent without a screen, and agentctl, its command line\n\
         License-Expression: MIT OR Apache-2.0\n{licences}Requires-Python: >=3.8\nClassifier: Operating System :: POSIX :: Linux\n\
         Classifier: Programming Language :: Rust\nDescription-Content-Type: text/markdown\n\n{readme}",
        release.package_name.trim_start_matches('@').replace('/', "-"),
        release.version,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_the_c_library() {
        let needs = |libc| Needs { machine: Machine::X86_64, libc, libraries: [].into(), has_symbols: false };
        assert_eq!(tags(&needs(LibC::Glibc(34))), ["manylinux_2_34_x86_64"]);
        assert_eq!(tags(&needs(LibC::Glibc(4))), ["manylinux_2_17_x86_64"]);
        assert_eq!(tags(&needs(LibC::Static)), ["manylinux_2_17_x86_64", "musllinux_1_1_x86_64"]);
    }
}
