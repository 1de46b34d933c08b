//! The Debian package: an `ar` archive of two tar archives, as deb(5) describes it.

use std::{env, fmt::Write as _};

use crate::outcome::Outcome;

use super::{
    archive::{Files, date, gzip, gzip_best},
    elf::{LibC, Machine},
    hash,
    release::Release,
};

/// The name of the file and its content.
///
/// # Errors
/// When a file that goes into it cannot be read or made.
pub(crate) fn make(release: &Release) -> Outcome<(String, Vec<u8>)> {
    let files = files(release)?;
    let architecture = match release.programs.needs.machine {
        Machine::X86_64 => "amd64",
        Machine::Aarch64 => "arm64",
    };
    let mut control = Files::default();
    control.add("control", fields(release, architecture, &files));
    control.add("md5sums", md5sums(&files));
    let mut package = b"!<arch>\n".to_vec();
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.tar(release.epoch, "./", false)?)?),
        ("data.tar.gz", gzip(&files.tar(release.epoch, "./", true)?)?),
    ];
    for (name, content) in members {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", release.epoch, 0, 0, "100644", content.len());
        package.extend(header.as_bytes());
        package.extend(&content);
        if content.len() % 2 == 1 {
            package.push(b'\n');
        }
    }
    Ok((format!("agentd_{}_{architecture}.deb", release.version), package))
}

/// What lintian takes for something else.
const OVERRIDES: &str = "\
# The reader of PDF files, which is written in Rust, has the names of tables and errors of fonts that FreeType has.
agentd: embedded-library freetype [usr/bin/agentd]
";

fn files(release: &Release) -> Outcome<Files> {
    let mut files = Files::default();
    for (name, content) in release.programs.each() {
        files.add_program(format!("usr/bin/{name}"), content);
    }
    for (name, page) in release.pages.iter() {
        files.add(format!("usr/share/man/man1/{name}.1.gz"), gzip_best(page)?);
    }
    for (shell, script) in release.completions.iter() {
        files.add(format!("usr/share/{}", shell.debian_path()), script.clone());
    }
    files.add("usr/share/lintian/overrides/agentd".to_owned(), OVERRIDES.as_bytes().to_vec());
    let doc = "usr/share/doc/agentd";
    files.add(format!("{doc}/copyright"), copyright(release)?);
    files.add(format!("{doc}/changelog.gz"), gzip_best(changelog(release).as_bytes())?);
    files.add(format!("{doc}/THIRD-PARTY-LICENSES.txt.gz"), gzip_best(release.third_party.as_bytes())?);
    files.add_below(doc, &release.documents()?);
    Ok(files)
}

fn maintainer() -> String {
    let name = env::var("DEBFULLNAME").unwrap_or_else(|_| "agentd developers".to_owned());
    let address = env::var("DEBEMAIL").unwrap_or_else(|_| "agentd@agentd.invalid".to_owned());
    format!("{name} <{address}>")
}

fn fields(release: &Release, architecture: &str, files: &Files) -> String {
    let size: usize = files.iter().map(|(_, content)| content.len().div_ceil(1024)).sum();
    let needs = &release.programs.needs;
    let mut depends = Vec::new();
    if let LibC::Glibc(minor) = needs.libc {
        depends.push(format!("libc6 (>= 2.{minor})"));
    }
    if needs.libraries.contains("libgcc_s.so.1") {
        depends.push("libgcc-s1 (>= 4.2)".to_owned());
    }
    let mut text = format!(
        "Package: agentd\nVersion: {}\nArchitecture: {architecture}\nMaintainer: {}\nInstalled-Size: {size}\n",
        release.version,
        maintainer()
    );
    if !depends.is_empty() {
        // A string takes every line.
        let _ = writeln!(text, "Depends: {}", depends.join(", "));
    }
    text.push_str(
        "Recommends: ca-certificates, git\nSuggests: openssh-client\nSection: devel\nPriority: optional\n\
         Description: coding agent without a screen: a daemon and its command line\n \
         agentd owns sessions, talks to language models, runs their tool calls (read,\n \
         bash, edit, write) and reports what happens in JSON Lines to the program that\n \
         drives it. Editors, scripts and CI drive agentd; people in a shell use\n \
         agentctl.\n",
    );
    text
}

fn changelog(release: &Release) -> String {
    format!(
        "agentd ({}) unstable; urgency=medium\n\n  * Release of this version.\n\n -- {}  {}\n",
        release.version,
        maintainer(),
        rfc_2822(release.epoch)
    )
}

fn rfc_2822(epoch: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (year, month, day) = date(epoch);
    // The first day of the epoch was a Thursday. Both remainders are within their tables.
    let pick =
        |table: &[&'static str], at: u64| usize::try_from(at).ok().and_then(|at| table.get(at).copied());
    let weekday = pick(&DAYS, epoch / 86_400 % 7).unwrap_or_default();
    let month = pick(&MONTHS, month - 1).unwrap_or_default();
    let seconds = epoch % 86_400;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} +0000")
}

/// The machine-readable form of Debian's copyright files.
fn copyright(release: &Release) -> Outcome<String> {
    let indented = |text: &str| -> String {
        text.lines()
            .map(|line| if line.is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
            .collect()
    };
    let mit = release.licence("LICENSE-MIT")?;
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: agentd\n\
         Comment: The licences of the crates that are linked into the programs are in\n THIRD-PARTY-LICENSES.txt.gz beside this file.\n\n\
         Files: *\nCopyright: the authors of agentd\nLicense: Expat or Apache-2.0\n\nLicense: Expat\n{}\n\
         License: Apache-2.0\n On Debian systems the text of this licence is in\n /usr/share/common-licenses/Apache-2.0.\n",
        indented(mit.trim())
    ))
}

fn md5sums(files: &Files) -> String {
    files.iter().map(|(path, content)| format!("{}  {path}\n", hash::md5(content))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_changelogs() {
        assert_eq!(rfc_2822(0), "Thu, 01 Jan 1970 00:00:00 +0000");
        assert_eq!(rfc_2822(1_709_164_800 + 3_661), "Thu, 29 Feb 2024 01:01:01 +0000");
    }
}
