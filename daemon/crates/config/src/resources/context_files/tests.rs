use std::fs;

use super::*;

struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            let path = place.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    /// In a place where everything that there was at first is trusted, or nothing.
    fn find(&self, cwd: &str, trusted: bool) -> ContextFiles {
        let files = self.trusted(cwd);
        self.find_as(cwd, trusted.then_some(&files))
    }

    fn find_as(&self, cwd: &str, trusted: Option<&StartingFiles>) -> ContextFiles {
        let (agent_dir, cwd) = (AgentDir::at(self.path("agent")), self.path(cwd));
        let environment: Environment = [("HOME", self.path("home"))].into_iter().collect();
        context_files(ContextQuery { agent_dir: &agent_dir, cwd: &cwd, environment: &environment, trusted })
    }

    fn trusted(&self, cwd: &str) -> StartingFiles {
        let (agent_dir, cwd) = (AgentDir::at(self.path("agent")), self.path(cwd));
        let environment: Environment = [("HOME", self.path("home"))].into_iter().collect();
        StartingFiles::of(&cwd, &crate::ProjectFolders::of(&cwd, &agent_dir), &agent_dir, &environment)
    }

    /// Without trust: what is used, and a part of what is said of the rest.
    fn check_untrusted(&self, cwd: &str, expected: &[&str], said: &[&str]) {
        let found = self.find(cwd, false);
        let used: Vec<&str> = found.files.iter().map(|file| file.content.as_str()).collect();
        assert_eq!(used, expected);
        let told: Vec<String> = found.diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), said.len(), "{told:?}");
        for (told, said) in told.iter().zip(said) {
            assert!(told.contains(said), "{told}");
        }
    }

    /// Paths below the place, and contents.
    fn check(&self, cwd: &str, expected: &[(&str, &str)]) {
        let found = self.find(cwd, true);
        let expected: Vec<ContextFile> = expected
            .iter()
            .map(|(path, content)| ContextFile { path: self.path(path), content: (*content).into() })
            .collect();
        assert_eq!(found, ContextFiles { files: expected, diagnostics: Vec::new() });
    }
}

#[test]
fn one_file_for_each_directory_from_the_agent_directory_down() {
    let place = TestFolder::new(&[
        ("agent/AGENTS.md", "user"),
        ("p/CLAUDE.md", "hidden"),
        ("p/AGENTS.md", "\u{FEFF}project"),
        ("p/q/CLAUDE.MD", "q"),
        ("p/q/r/AGENTS.override.md", "r"),
        ("p/q/r/AGENTS.md", "hidden"),
        ("p/q/r/below/AGENTS.md", "hidden"),
    ]);
    place.check(
        "p/q/r",
        &[
            ("agent/AGENTS.md", "user"),
            ("p/AGENTS.md", "project"),
            ("p/q/CLAUDE.MD", "q"),
            ("p/q/r/AGENTS.override.md", "r"),
        ],
    );
    place.check("agent", &[("agent/AGENTS.md", "user")]);
}

#[test]
fn a_directory_of_that_name_is_no_file() {
    let place = TestFolder::new(&[("p/AGENTS.md/x", ""), ("p/CLAUDE.md", "c")]);
    place.check("p", &[("p/CLAUDE.md", "c")]);
}

#[test]
fn a_huge_file_is_left_out_with_a_warning() {
    let place = TestFolder::new(&[("p/AGENTS.md", "")]);
    let file = fs::File::options().write(true).open(place.path("p/AGENTS.md")).unwrap();
    file.set_len(crate::MAX_TEXT_BYTES + 1).unwrap();
    let found = place.find("p", true);
    assert!(found.files.is_empty());
    let said = found.diagnostics[0].to_string();
    assert!(said.contains("p/AGENTS.md: the file is 1048577 bytes long"), "{said}");
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_bytes_that_are_no_text_are_told() {
    let place = TestFolder::new(&[("real/rules.md", "linked"), ("p/q/x", "")]);
    std::os::unix::fs::symlink(place.path("real/rules.md"), place.path("p/AGENTS.md")).unwrap();
    std::os::unix::fs::symlink(place.path("nowhere"), place.path("p/q/AGENTS.md")).unwrap();
    place.check("p/q", &[("p/AGENTS.md", "linked")]);
    fs::write(place.path("p/q/CLAUDE.md"), b"one\n\xFF\n").unwrap();
    let found = place.find("p/q", true);
    assert_eq!(found.files[1].content, "one\n\u{FFFD}\n");
    assert_eq!((found.diagnostics.len(), found.diagnostics[0].line), (1, Some(2)));
}

#[test]
fn a_worktree_inside_of_its_repository_hides_the_same_file() {
    let files = [
        ("main/.git/worktrees/w/HEAD", ""),
        ("main/AGENTS.md", "main"),
        ("main/trees/w/.git", "gitdir: ../../.git/worktrees/w\n"),
        ("main/trees/w/AGENTS.md", "worktree"),
        ("main/trees/w/src/AGENTS.md", "src"),
    ];
    let place = TestFolder::new(&files);
    place.check(
        "main/trees/w/src",
        &[("main/trees/w/AGENTS.md", "worktree"), ("main/trees/w/src/AGENTS.md", "src")],
    );
    fs::rename(place.path("main/trees/w/AGENTS.md"), place.path("main/trees/w/CLAUDE.md")).unwrap();
    place.check("main/trees/w", &[("main/AGENTS.md", "main"), ("main/trees/w/CLAUDE.md", "worktree")]);
}

#[test]
fn a_submodule_hides_nothing() {
    let place = TestFolder::new(&[
        ("main/.git/modules/s/HEAD", ""),
        ("main/AGENTS.md", "main"),
        ("main/s/.git", "gitdir: ../.git/modules/s"),
        ("main/s/AGENTS.md", "sub"),
    ]);
    place.check("main/s", &[("main/AGENTS.md", "main"), ("main/s/AGENTS.md", "sub")]);
}

#[test]
fn what_is_not_simply_the_projects_needs_trust() {
    use std::os::unix::fs::symlink;

    let place = TestFolder::new(&[
        ("agent/AGENTS.md", "user"),
        ("agent/auth.json", "keys"),
        ("work/AGENTS.md", "above"),
        ("work/p/.git/HEAD", ""),
        ("work/p/CLAUDE.md", "project"),
        ("work/p/docs/rules.md", "rules"),
        ("work/p/sub/x", ""),
        ("work/secret", "secret"),
    ]);
    let above = "outside of the project, so that it is used only when the project is trusted";
    place.check_untrusted("work/p/sub", &["user", "project"], &[above]);
    // Links of the project that stay in it, absolute or not.
    for target in [place.path("work/p/docs/rules.md"), "../docs/rules.md".into()] {
        symlink(&target, place.path("work/p/sub/AGENTS.md")).unwrap();
        place.check_untrusted("work/p/sub", &["user", "project", "rules"], &[above]);
        fs::remove_file(place.path("work/p/sub/AGENTS.md")).unwrap();
    }
    // Files that do not.
    let before = place.trusted("work/p/sub");
    symlink("../../secret", place.path("work/p/sub/AGENTS.md")).unwrap();
    place.check_untrusted(
        "work/p/sub",
        &["user", "project"],
        &[above, "a link that leads out of the project, to "],
    );
    assert_eq!(place.find("work/p/sub", true).files.last().unwrap().content, "secret");
    // Trust is for where it led then.
    let found = place.find_as("work/p/sub", Some(&before));
    assert_eq!(found.files.len(), 3);
    assert!(
        found.diagnostics[0].to_string().contains("was not so when the project was trusted"),
        "{found:?}"
    );
    // Never, and not even where that is trusted.
    fs::remove_file(place.path("work/p/sub/AGENTS.md")).unwrap();
    symlink(place.path("agent/auth.json"), place.path("work/p/sub/AGENTS.md")).unwrap();
    let found = place.find("work/p/sub", true);
    assert_eq!((found.files.len(), found.diagnostics.len()), (3, 1));
    assert!(found.diagnostics[0].to_string().contains("leads into the agent directory"), "{found:?}");
    // The file that is there once already is neither twice nor forbidden.
    fs::remove_file(place.path("work/p/sub/AGENTS.md")).unwrap();
    symlink(place.path("agent/AGENTS.md"), place.path("work/p/sub/AGENTS.md")).unwrap();
    place.check_untrusted("work/p/sub", &["user", "project"], &[above]);
}

#[test]
fn the_home_directory_is_no_project() {
    let place = TestFolder::new(&[("home/.git/HEAD", ""), ("home/.ssh/key", "secret"), ("home/notes/x", "")]);
    std::os::unix::fs::symlink("../.ssh/key", place.path("home/notes/AGENTS.md")).unwrap();
    place.check_untrusted("home/notes", &[], &["a link that leads out of the project"]);
}

#[test]
fn files_of_processes_are_never_read() {
    let place = TestFolder::new(&[("p/x", "")]);
    std::os::unix::fs::symlink("/proc/self/status", place.path("p/AGENTS.md")).unwrap();
    let found = place.find("p", true);
    assert_eq!((found.files.len(), found.diagnostics.len()), (0, 1), "{found:?}");
}
