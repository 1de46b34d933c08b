//! What packages of all kinds hold, for one platform.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use crate::outcome::{self, About as _, Outcome, fail};

use super::{
    archive::Files,
    dependencies::{self, Crate, CrateId},
    licences,
    programs::Programs,
};

/// The content of a release for one platform.
pub(crate) struct Release {
    pub(crate) root: PathBuf,
    pub(crate) version: String,
    /// The time of all files, in seconds.
    pub(crate) epoch: u64,
    /// The name for npm and PyPI.
    pub(crate) package_name: String,
    pub(crate) programs: Programs,
    /// Manual pages by name: `agentctl-prompt`.
    pub(crate) pages: Rc<BTreeMap<String, Vec<u8>>>,
    pub(crate) completions: Rc<Vec<(Shell, Vec<u8>)>>,
    pub(crate) crates: BTreeMap<CrateId, Crate>,
    /// The licences of the crates.
    pub(crate) third_party: String,
}

/// A shell that agentctl has completions for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
        }
    }

    /// Where the shell looks below a `share` folder.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Bash => "bash-completion/completions/agentctl",
            Self::Zsh => "zsh/site-functions/_agentctl",
            Self::Fish => "fish/vendor_completions.d/agentctl.fish",
        }
    }

    /// Where Debian's packages put it below `/usr/share`.
    pub(crate) fn debian_path(self) -> &'static str {
        match self {
            Self::Zsh => "zsh/vendor-completions/_agentctl",
            other => other.path(),
        }
    }
}

impl Release {
    /// The content of a licence file of the repository.
    pub(crate) fn licence(&self, name: &str) -> Outcome<String> {
        let path = self.root.join(name);
        fs::read_to_string(&path).at(&path)
    }

    /// README and the pages that it links to.
    pub(crate) fn documents(&self) -> Outcome<Files> {
        let mut files = Files::default();
        files.add("README.md", outcome::read(&self.root.join("README.md"))?);
        let folder = self.root.join("docs");
        for entry in fs::read_dir(&folder).at(&folder)? {
            let path = entry.at(&folder)?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                files.add(format!("docs/{name}"), outcome::read(&path)?);
            }
        }
        Ok(files)
    }

    /// All three licence files.
    pub(crate) fn licences(&self) -> Outcome<Files> {
        let mut files = Files::default();
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            files.add(name, self.licence(name)?);
        }
        files.add("THIRD-PARTY-LICENSES.txt", self.third_party.clone());
        Ok(files)
    }

    /// Manual pages and completions, as they are put below a `share` folder.
    pub(crate) fn share(&self) -> Files {
        let mut files = Files::default();
        for (name, page) in self.pages.iter() {
            files.add(format!("man/man1/{name}.1"), page.clone());
        }
        for (shell, script) in self.completions.iter() {
            files.add(shell.path(), script.clone());
        }
        files
    }
}

/// The releases of all given programs. Their pages and completions are those of the programs that run here.
///
/// # Errors
/// When none runs here, when their versions differ from the workspace's, or two are for the same platform.
pub(crate) fn of(
    root: &Path,
    epoch: u64,
    package_name: &str,
    all: Vec<Programs>,
    work: &Path,
) -> Outcome<Vec<Release>> {
    let Some(here) = all.iter().find(|programs| programs.run_here()) else {
        return fail("no programs for this machine: their manual pages and completions are needed");
    };
    let version = version(root, here)?;
    let pages = Rc::new(pages(here, &version, work)?);
    let mut completions = Vec::new();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        completions.push((shell, here.output("agentctl", &["completions", shell.name()])?));
    }
    let completions = Rc::new(completions);
    let mut releases: Vec<Release> = Vec::new();
    for programs in all {
        if releases.iter().any(|release| release.programs.target() == programs.target()) {
            return fail(format!("two folders have programs for {}", programs.target()));
        }
        let crates = dependencies::read(root, programs.target())?;
        releases.push(Release {
            root: root.to_owned(),
            version: version.clone(),
            epoch,
            package_name: package_name.to_owned(),
            programs,
            pages: Rc::clone(&pages),
            completions: Rc::clone(&completions),
            third_party: licences::third_party(&crates)?,
            crates,
        });
    }
    Ok(releases)
}

/// The version of the workspace, which the programs must have.
fn version(root: &Path, here: &Programs) -> Outcome<String> {
    let metadata = dependencies::metadata(root, here.target())?;
    let agentd = metadata.packages.iter().find(|package| package.name.as_str() == "agentd");
    let Some(version) = agentd.map(|package| package.version.to_string()) else {
        return fail("the workspace has no package agentd");
    };
    for (program, _) in here.each() {
        let said = String::from_utf8_lossy(&here.output(program, &["--version"])?).trim().to_owned();
        if said.split(' ').nth(1) != Some(&version) {
            return fail(format!("the workspace has version {version}, the program says: {said}"));
        }
    }
    Ok(version)
}

/// The manual pages that agentctl writes, and those of the other programs, made of their help.
fn pages(here: &Programs, version: &str, work: &Path) -> Outcome<BTreeMap<String, Vec<u8>>> {
    let folder = work.join("man");
    here.output("agentctl", &["man", "--out", &folder.to_string_lossy()])?;
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(&folder).at(&folder)? {
        let path = entry.at(&folder)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        pages.insert(name, outcome::read(&path)?);
    }
    if pages.len() < 2 {
        return fail("agentctl wrote no manual pages");
    }
    for program in ["agentd", "agentd-syntax"] {
        let help = here.output(program, &["--help"])?;
        let page = page_of_help(program, version, &String::from_utf8_lossy(&help))?;
        pages.insert(program.to_owned(), page.into_bytes());
    }
    Ok(pages)
}

/// A manual page of a help text: its first line is `NAME - what it is`, its first paragraph the synopsis.
fn page_of_help(program: &str, version: &str, help: &str) -> Outcome<String> {
    let mut paragraphs = help.splitn(3, "\n\n");
    let parts = (paragraphs.next(), paragraphs.next(), paragraphs.next());
    let (Some(title), Some(usage), Some(rest)) = parts else {
        return fail(format!("the help of {program} has another form than its manual page is made of"));
    };
    let Some(usage) = usage.strip_prefix("Usage: ") else {
        return fail(format!("the help of {program} does not begin with its usage"));
    };
    let usage: Vec<&str> = usage.lines().map(str::trim_start).collect();
    let as_is = |text: &str| text.lines().map(escaped).collect::<Vec<_>>().join("\n");
    Ok(format!(
        ".TH {} 1 \"\" \"agentd {version}\" \"agentd\"\n.SH NAME\n{}\n.SH SYNOPSIS\n.nf\n{}\n.fi\n.SH DESCRIPTION\n.nf\n{}\n.fi\n\
         .SH \"SEE ALSO\"\n.BR agentctl (1)\n",
        program.to_uppercase(),
        escaped(title),
        as_is(&usage.join("\n")),
        as_is(rest.trim_end()),
    ))
}

/// A line of text that roff takes for nothing else.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-").replace('`', "\\(ga").replace('\'', "\\(aq");
    if line.starts_with('.') { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_of_a_help_text() {
        let help = "agentd - the daemon\n\nUsage: agentd [serve]\n       agentd --stdio\n\nIt's here.\n.\n\n  -p  \\n";
        let page = page_of_help("agentd", "1.0", help).unwrap();
        assert!(page.contains(".SH NAME\nagentd \\- the daemon\n"), "{page}");
        assert!(page.contains(".nf\nagentd [serve]\nagentd \\-\\-stdio\n.fi"), "{page}");
        assert!(page.contains("It\\(aqs here.\n\\&.\n\n  \\-p  \\en\n.fi"), "{page}");
        assert!(page_of_help("agentd", "1.0", "agentd\n").is_err());
    }
}
