//! The licences of the crates that are linked into the programs, as their authors want them passed on.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use crate::outcome::{About as _, Outcome, fail};

use super::dependencies::{Crate, CrateId};

/// What the names of licence files begin with, in small letters.
const NAMES: &[&str] = &["license", "licence", "copying", "copyright", "notice", "unlicense"];

/// The terms of the MIT licence (SPDX `MIT`).
const MIT: &str = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation \
files (the \"Software\"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, \
publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, \
subject to the following conditions:\n\n\
The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.\n\n\
THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF \
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY \
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE \
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.";

/// One text with every crate of others, its licence, and each distinct text once.
///
/// # Errors
/// When a crate carries no text.
pub(crate) fn third_party(crates: &BTreeMap<CrateId, Crate>) -> Outcome<String> {
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for ((name, version), one) in crates.iter().filter(|(_, one)| one.is_linked && one.is_external()) {
        let source = one.repository.as_deref().unwrap_or("-");
        line(&mut list, &format!("{name} {version}  {}  {source}", one.licence));
        let mut found = texts_of(&one.folder)?;
        if found.is_empty() {
            found = texts_of_repository(one, crates)?;
        }
        if found.is_empty() && one.licence == "MIT" {
            found.push(mit(name, source));
        }
        if found.is_empty() {
            return fail(format!("{name} {version} carries no text of its licence, {}", one.licence));
        }
        for text in found {
            let users = texts.entry(text).or_default();
            let user = format!("{name} {version}");
            if users.last() != Some(&user) {
                users.push(user);
            }
        }
    }
    // In the order of the first crate that has a text.
    let mut texts: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, users)| (users, text)).collect();
    texts.sort();
    let mut page = String::from(
        "agentd, agentctl and agentd-syntax are built from the crates below and from the standard library of Rust\n\
         (MIT OR Apache-2.0, The Rust Project Contributors). Each is listed with its licence and source; the texts\n\
         follow, each once, as the crates carry them.\n\n",
    );
    page.push_str(&list);
    for (users, text) in texts {
        line(&mut page, &format!("\n{}\n{}\n{}\n", "=".repeat(100), users.join(", "), "-".repeat(100)));
        page.push_str(&text);
    }
    Ok(page)
}

fn line(text: &mut String, line: &str) {
    // A string takes every line.
    let _ = writeln!(text, "{line}");
}

/// The text that the MIT licence is, for a crate that names the licence and carries no file of it. Whose the copyright is stands in its
/// repository alone.
fn mit(name: &str, source: &str) -> String {
    format!("MIT License\n\nCopyright (c) the authors of {name} ({source})\n\n{MIT}\n")
}

/// The texts of another crate of the same repository and licence: some authors put them into one of their crates alone.
fn texts_of_repository(one: &Crate, crates: &BTreeMap<CrateId, Crate>) -> Outcome<Vec<String>> {
    let is_sibling = |other: &&Crate| {
        one.repository.is_some() && other.repository == one.repository && other.licence == one.licence
    };
    for sibling in crates.values().filter(is_sibling) {
        let found = texts_of(&sibling.folder)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// The texts of the licence files right inside a folder or in its folder `LICENSES`, without differences of line ends.
fn texts_of(folder: &Path) -> Outcome<Vec<String>> {
    let mut paths = Vec::new();
    for folder in [folder.to_owned(), folder.join("LICENSES")].into_iter().filter(|folder| folder.is_dir()) {
        for entry in fs::read_dir(&folder).at(&folder)? {
            let path = entry.at(&folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let is_licence =
                NAMES.iter().any(|begin| name.starts_with(begin)) || folder.ends_with("LICENSES");
            if path.is_file() && is_licence && !is_source {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let mut texts = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).at(&path)?;
        let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
        let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
        texts.push(format!("{}\n", lines.join("\n")));
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(folder: &Path) -> Crate {
        Crate {
            description: None,
            licence: "MIT".to_owned(),
            repository: None,
            checksum: Some("00".to_owned()),
            is_linked: true,
            folder: folder.to_owned(),
            uses: [].into(),
        }
    }

    #[test]
    fn a_text_stands_once_with_all_its_crates() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("a", "Text.\n"), ("b", "Text. \r\n")] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("LICENSE-MIT"), text).unwrap();
            fs::write(at(name).join("license.rs"), "fn main() {}").unwrap();
        }
        let crates = ["a", "b"].map(|name| ((name.to_owned(), "1.0.0".to_owned()), one(&at(name))));
        let page = third_party(&crates.into()).unwrap();
        assert_eq!(page.matches("Text.").count(), 1, "{page}");
        assert!(page.contains("\na 1.0.0, b 1.0.0\n") && page.contains("a 1.0.0  MIT  -\n"), "{page}");
        assert!(!page.contains("fn main"), "{page}");
    }

    #[test]
    fn a_crate_without_a_text_has_that_of_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let crates = ["a", "b"].map(|name| {
            fs::create_dir(at(name)).unwrap();
            let found = Crate { repository: Some("https://example.org/both".into()), ..one(&at(name)) };
            ((name.to_owned(), "1.0.0".to_owned()), found)
        });
        fs::write(at("b").join("LICENSE"), "Text.\n").unwrap();
        let page = third_party(&crates.into()).unwrap();
        assert!(page.contains("\na 1.0.0, b 1.0.0\n"), "{page}");
    }

    #[test]
    fn a_crate_without_a_text_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let of = |licence: &str| {
            let found = Crate { licence: licence.to_owned(), ..one(folder.path()) };
            third_party(&[(("a".to_owned(), "1.0.0".to_owned()), found)].into())
        };
        assert!(of("MIT").unwrap().contains("Copyright (c) the authors of a (-)"));
        assert!(of("BSD-3-Clause").unwrap_err().0.contains("a 1.0.0 carries no text"));
    }
}
