//! Links of the pages: every relative link leads to a file, and every anchor to a heading.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_e2e::binaries::workspace;

/// The README and all pages below `docs`, and those of the client libraries.
fn pages() -> Vec<PathBuf> {
    let docs = workspace().join("docs");
    let mut pages = vec![workspace().join("README.md")];
    pages.extend(
        ["typescript", "python"].map(|name| workspace().join("clients").join(name).join("README.md")),
    );
    for folder in [docs.join("decisions"), docs] {
        let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    pages
}

/// The text without code blocks and code spans, which hold brackets of their own.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.extend([line, "\n"]);
        }
    }
    prose
}

fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|after| after.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).filter(|target| !target.contains("://")).collect()
}

/// The anchors of a page's headings, as code hosts derive them.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let is_there = target.exists() && (anchor.is_empty() || has_anchor(&target, anchor));
            if !is_there {
                broken.push(format!("{}: {link}", page.strip_prefix(workspace()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

fn has_anchor(page: &Path, anchor: &str) -> bool {
    anchors(&fs::read_to_string(page).unwrap()).iter().any(|heading| heading == anchor)
}
