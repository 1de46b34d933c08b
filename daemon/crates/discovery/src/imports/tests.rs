use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;
use crate::testing::TestFolder;

fn folder() -> TestFolder {
    let folder = TestFolder::new(&[
        ("p/CLAUDE.md", ""),
        ("p/docs/a.md", "A @b.md\n"),
        ("p/docs/b.md", "B\n"),
        ("p/loop.md", "L @loop.md @CLAUDE.md"),
        ("p/.env", "KEY=hush"),
        ("p/.git/config", "hush"),
        ("p/d0.md", "0 @d1.md"),
        ("p/d1.md", "1 @d2.md"),
        ("p/d2.md", "2 @d3.md"),
        ("p/d3.md", "3 @d4.md"),
        ("p/d4.md", "4 @d5.md"),
        ("p/d5.md", "5"),
        ("home/notes.md", "N"),
        ("home/.ssh/id_rsa", "hush"),
        ("home/.agentd/auth.md", "hush"),
    ]);
    symlink(folder.path("home/.ssh/id_rsa"), folder.path("p/key.md")).unwrap();
    folder
}

fn check(trusted: bool, text: &str, expected: &str) {
    let folder = folder();
    let place = folder.place("p");
    let rules = ImportRules::new(&place, CapabilityLevel::Project, trusted);
    assert_eq!(expand_imports(text, &folder.path("p/CLAUDE.md"), rules), expected, "{text:?}");
}

#[test]
fn files_take_the_place_of_their_paths() {
    check(false, "See @docs/b.md.", "See B.");
    check(false, "@docs/b.md\n(@docs/b.md), \t@docs/b.md: x", "B\n(@docs/b.md), \tB: x");
    check(false, "@docs/a.md", "A B");
    check(false, "mail@docs/b.md @missing.md @docs @", "mail@docs/b.md @missing.md @docs @");
    check(false, "`@docs/b.md` @docs/b.md ``x ` @docs/b.md``", "`@docs/b.md` B ``x ` @docs/b.md``");
    check(
        false,
        "```\n@docs/b.md\n```\n@docs/b.md\n~~~~\n@docs/b.md\n~~~\n@docs/b.md",
        "```\n@docs/b.md\n```\nB\n~~~~\n@docs/b.md\n~~~\n@docs/b.md",
    );
    check(false, "` @docs/b.md", "` B");
}

#[test]
fn circles_and_depth_end() {
    check(false, "@loop.md", "L @loop.md @CLAUDE.md");
    check(false, "@d0.md", "0 1 2 3 4 @d5.md");
}

#[test]
fn a_project_imports_no_secrets() {
    for trusted in [false, true] {
        check(
            trusted,
            "@.env @.git/config @key.md @~/.ssh/id_rsa @~/.agentd/auth.md",
            "@.env @.git/config @key.md @~/.ssh/id_rsa @~/.agentd/auth.md",
        );
    }
    check(false, "@~/notes.md", "@~/notes.md");
    check(true, "@~/notes.md", "N");
    let folder = folder();
    let place = folder.place("p");
    let rules = ImportRules::new(&place, CapabilityLevel::User, false);
    let text = expand_imports("@notes.md @.agentd/auth.md", &folder.path("home/x.md"), rules);
    assert_eq!(text, "N @.agentd/auth.md");
}

#[test]
fn what_is_imported_is_bounded() {
    let folder = folder();
    folder.write("p/big.md", &"x".repeat(700 * 1024));
    let place = folder.place("p");
    let rules = ImportRules::new(&place, CapabilityLevel::Project, false);
    let text = expand_imports("@big.md @big.md", &folder.path("p/CLAUDE.md"), rules);
    assert!(text.len() < MAX_IMPORTED_BYTES && text.ends_with(" @big.md"), "{}", text.len());
    let text = expand_imports(&"@docs/b.md ".repeat(150), &folder.path("p/CLAUDE.md"), rules);
    assert_eq!(text.matches("B ").count(), MAX_FILES);
    let ticks = "` `` ".repeat(50_000);
    assert_eq!(
        expand_imports(&format!("@x {ticks}"), &folder.path("p/CLAUDE.md"), rules).len(),
        ticks.len() + 3
    );
}

proptest! {
    #[test]
    fn texts_without_files_stay(text in "([@`~ \\n]|docs|none|\\.md|é){0,60}") {
        let folder = TestFolder::new(&[("p/CLAUDE.md", "")]);
        let place = folder.place("p");
        let rules = ImportRules::new(&place, CapabilityLevel::Project, true);
        prop_assert_eq!(expand_imports(&text, &folder.path("p/CLAUDE.md"), rules), text);
    }
}
