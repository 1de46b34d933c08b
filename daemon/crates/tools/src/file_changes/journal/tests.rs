use super::*;
use crate::file_changes::{change::ReadFile, steps::apply_one};

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    journals: ChangeJournals,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let journals = ChangeJournals::of_session(&root.join("run"), "a session");
        let place = Self { _folder: folder, root, journals };
        place.write("a", "1");
        place.write("b", "2");
        place.write("c", "3");
        place.write("d", "4");
        fs::set_permissions(place.root.join("d"), Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.root.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Option<ReadFile> {
        Some(ReadFile::read(&LocalFiles, &self.root.join(name), name, 1000).unwrap())
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }

    /// A change with a step of each kind.
    fn changes(&self) -> Vec<FileChange> {
        let path = |name: &str| self.root.join(name);
        let write = |name: &str, content: &str, before| FileChange::Write {
            path: path(name),
            content: content.into(),
            before,
        };
        vec![
            write("a", "11", self.read("a")),
            write("b", "22", self.read("b")),
            write("new/deep/e", "5", None),
            FileChange::Move { from: path("b"), to: path("moved/b") },
            FileChange::Move { from: path("c"), to: path("moved/c") },
            FileChange::Remove { path: path("d"), before: self.read("d").unwrap() },
        ]
    }

    /// What is there of the files, of their old and their new names.
    fn state(&self) -> [Option<String>; 7] {
        ["a", "b", "c", "d", "new/deep/e", "moved/b", "moved/c"].map(|name| self.text(name))
    }

    /// A process that is killed has no lock any more, and leaves its journal.
    fn killed_after(&self, steps: usize) {
        let changes = self.changes();
        let journal = self.journals.begin(&changes, ("call", "lsp")).unwrap();
        for change in &changes[..steps] {
            apply_one(&LocalFiles, change).unwrap();
        }
        drop(journal);
    }

    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("run/changes")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

#[test]
fn what_a_killed_process_did_is_taken_back_wherever_it_was() {
    for steps in 0..=6 {
        let place = Place::new();
        let before = place.state();
        place.killed_after(steps);
        let taken = place.journals.take_back().unwrap();
        let expected =
            TakenBack { call_id: "call".into(), tool: "lsp".into(), files: steps, left: Vec::new() };
        assert_eq!((taken, place.state()), (vec![expected], before), "after {steps}");
        assert_eq!(fs::metadata(place.root.join("d")).unwrap().mode() & 0o777, 0o755);
        assert!(!place.root.join("new").exists() && !place.root.join("moved").exists());
        assert_eq!(place.left(), Vec::<String>::new());
        assert!(place.journals.take_back().unwrap().is_empty());
    }
}

#[test]
fn taking_back_can_itself_be_interrupted() {
    for steps in 0..=6 {
        let place = Place::new();
        let before = place.state();
        place.killed_after(6);
        let folder = fs::read_dir(&place.journals.0).unwrap().next().unwrap().unwrap().path();
        let text = fs::read(folder.join(LIST)).unwrap();
        let list: List =
            serde_json::from_slice(text.splitn(2, |byte| *byte == b'\n').nth(1).unwrap()).unwrap();
        for step in list.steps.iter().rev().take(steps) {
            assert_eq!(undo(step, &folder), Ok(true));
        }
        let taken = place.journals.take_back().unwrap();
        assert_eq!((taken[0].files, taken[0].left.len(), place.state()), (6 - steps, 0, before), "{steps}");
    }
}

#[test]
fn a_change_that_is_over_leaves_no_journal() {
    let place = Place::new();
    let changes = place.changes();
    let journal = place.journals.begin(&changes, ("call", "lsp")).unwrap();
    for change in &changes {
        apply_one(&LocalFiles, change).unwrap();
    }
    let after = place.state();
    journal.end();
    assert!(place.journals.take_back().unwrap().is_empty());
    assert_eq!((place.state(), place.left()), (after, Vec::new()));
}

#[test]
fn what_somebody_makes_is_not_taken_back() {
    let place = Place::new();
    let changes = place.changes();
    let journal = place.journals.begin(&changes, ("call", "lsp")).unwrap();
    apply_one(&LocalFiles, &changes[0]).unwrap();
    assert!(place.journals.take_back().unwrap().is_empty());
    assert_eq!(place.text("a").as_deref(), Some("11"));
    drop(journal);
    assert_eq!(place.journals.take_back().unwrap().len(), 1);
    assert_eq!(place.text("a").as_deref(), Some("1"));
}

#[test]
fn a_file_that_was_changed_since_stays_and_its_old_content_is_kept() {
    let place = Place::new();
    place.killed_after(6);
    place.write("a", "the user's");
    place.write("new/deep/e", "the user's, too");
    let all = place.journals.take_back().unwrap();
    let [taken] = &all[..] else { panic!("{all:?}") };
    assert_eq!((taken.files, taken.left.len()), (4, 2), "{taken:?}");
    assert!(taken.left[0].ends_with("new/deep/e was changed since"), "{taken:?}");
    let kept = place.left();
    let old = place.root.join("run/changes").join(&kept[0]).join("0");
    let told = format!("a was changed since; its old content is {}", old.display());
    assert!(taken.left[1].ends_with(&told), "{taken:?}");
    assert_eq!(fs::read_to_string(old).unwrap(), "1");
    assert_eq!((place.text("a").as_deref(), place.text("b").as_deref()), (Some("the user's"), Some("2")));
    assert!(place.journals.take_back().unwrap().is_empty());
}

#[test]
fn a_folder_without_a_list_is_of_a_change_that_had_not_begun() {
    let place = Place::new();
    let folder = place.journals.0.join("change-x");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("0"), "1").unwrap();
    assert!(place.journals.take_back().unwrap().is_empty());
    assert!(!folder.exists());
}
