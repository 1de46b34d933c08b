//! Variables that may be set without a question: those that change nothing of what other programs run.

use crate::shell::Assignment;

/// Variables of programs that change what they show, and nothing else.
const HARMLESS: &[&str] = &[
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LINES",
    "NO_COLOR",
    "NODE_ENV",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TZ",
];

/// Names in capitals that scripts give variables of their own, and no program looks at.
const OF_SCRIPTS: &[&str] = &[
    "BASE", "COUNT", "DEST", "DIR", "DIRS", "DST", "FILE", "FILES", "FOUND", "INPUT", "ITEM", "LIST", "MSG",
    "NAME", "NUM", "OUT", "OUTPUT", "PATTERN", "RESULT", "ROOT", "SRC", "TOTAL", "URL",
];

/// Whether setting a variable changes nothing of what runs. Programs look at many; a variable of the shell alone is harmless unless
/// its name is one that programs or shells look at, which are written in capitals, but for those of proxies.
pub(crate) fn is_harmless(assignment: &Assignment) -> bool {
    let name = assignment.name.as_str();
    if HARMLESS.contains(&name) || (name.starts_with("LC_") && name != "LC_PATH") {
        return true;
    }
    let is_shells_own = OF_SCRIPTS.contains(&name)
        || (name.len() == 1 && name != "_")
        || name.chars().any(|letter| letter.is_ascii_lowercase());
    !assignment.exported && is_shells_own && !name.ends_with("_proxy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let is = |name: &str, exported| is_harmless(&Assignment { name: name.to_owned(), exported });
        assert!(is("LC_ALL", true) && is("x", false) && is("my_file", false) && is("X", false));
        for name in
            ["PATH", "IFS", "LD_PRELOAD", "GIT_PAGER", "HOME", "BASH_ENV", "RUSTC_WRAPPER", "https_proxy"]
        {
            assert!(!is(name, false), "{name}");
        }
        assert!(!is("x", true), "a program sees it");
    }
}
