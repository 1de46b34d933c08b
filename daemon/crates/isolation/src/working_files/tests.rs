use super::*;

struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("root/sub")).unwrap();
        fs::create_dir_all(dir.path().join("scratch/new/sub/deep")).unwrap();
        for (path, text) in [("root/a", "old a"), ("root/sub/b", "old b"), ("scratch/new/a", "new a")] {
            fs::write(dir.path().join(path), text).unwrap();
        }
        fs::write(dir.path().join("scratch/new/sub/deep/c"), "new c").unwrap();
        Self { dir }
    }

    fn root(&self, path: &str) -> PathBuf {
        self.dir.path().join("root").join(path)
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root(path)).ok()
    }

    fn replacements(&self) -> Replacements {
        let paths = ["a", "sub/b", "sub/deep/c"].map(PathBuf::from);
        let stamps = look(&self.root(""), &paths).unwrap().unwrap();
        let files = paths.into_iter().zip(stamps).collect();
        Replacements::new(self.root(""), self.dir.path().join("scratch"), files).unwrap()
    }

    fn check_old(&self) {
        assert_eq!(self.read("a").as_deref(), Some("old a"));
        assert_eq!(self.read("sub/b").as_deref(), Some("old b"));
        assert!(!self.root("sub/deep").exists());
    }
}

#[test]
fn files_are_replaced_made_and_deleted_and_put_back() {
    let bench = Bench::new();
    fs::set_permissions(bench.root("a"), Permissions::from_mode(0o640)).unwrap();
    let replacements = bench.replacements();
    replacements.carry_out().unwrap();
    assert_eq!(bench.read("a").as_deref(), Some("new a"));
    assert_eq!(fs::metadata(bench.root("a")).unwrap().mode() & 0o777, 0o640);
    assert_eq!(bench.read("sub/b"), None);
    assert_eq!(bench.read("sub/deep/c").as_deref(), Some("new c"));
    assert_eq!(replacements.undo().unwrap(), []);
    bench.check_old();
    // Once more changes nothing.
    assert_eq!(replacements.undo().unwrap(), []);
    bench.check_old();
}

#[test]
fn whatever_was_done_is_undone_by_the_journal() {
    for done in 0..=3 {
        let bench = Bench::new();
        let replacements = bench.replacements();
        replacements.write_journal().unwrap();
        for (number, step) in replacements.steps.iter().enumerate().take(done) {
            replacements.carry_out_step(number, step).unwrap();
        }
        let found = Replacements::read_journal(&bench.dir.path().join("scratch")).unwrap();
        assert_eq!(found.undo().unwrap(), []);
        bench.check_old();
    }
}

#[test]
fn a_file_that_was_saved_meanwhile_stops_everything() {
    let bench = Bench::new();
    let replacements = bench.replacements();
    fs::write(bench.root("a"), "saved by the user").unwrap();
    let Err(Refusal::Changed(path)) = replacements.carry_out() else { panic!("it is to be refused") };
    assert_eq!(path, Path::new("a"));
    assert_eq!(replacements.undo().unwrap(), []);
    assert_eq!(bench.read("a").as_deref(), Some("saved by the user"));
    assert_eq!(bench.read("sub/b").as_deref(), Some("old b"));
}

#[test]
fn a_file_that_appears_or_goes_stops_everything() {
    let bench = Bench::new();
    let replacements = bench.replacements();
    fs::create_dir(bench.root("sub/deep")).unwrap();
    fs::write(bench.root("sub/deep/c"), "the user's").unwrap();
    assert!(matches!(replacements.carry_out(), Err(Refusal::Changed(_))));
    assert_eq!(replacements.undo().unwrap(), []);
    assert_eq!(bench.read("sub/deep/c").as_deref(), Some("the user's"));
    assert_eq!(bench.read("a").as_deref(), Some("old a"));
    let bench = Bench::new();
    let replacements = bench.replacements();
    fs::remove_file(bench.root("sub/b")).unwrap();
    assert!(matches!(replacements.carry_out(), Err(Refusal::Changed(_))));
    assert_eq!(replacements.undo().unwrap(), []);
    assert_eq!((bench.read("a").as_deref(), bench.read("sub/b")), (Some("old a"), None));
}

#[test]
fn a_file_that_is_saved_after_the_replacement_stays_and_the_old_one_is_kept() {
    let bench = Bench::new();
    let replacements = bench.replacements();
    replacements.carry_out().unwrap();
    fs::write(bench.root("a"), "saved after").unwrap();
    fs::write(bench.root("sub/b"), "made again").unwrap();
    let kept = replacements.undo().unwrap();
    let contents: Vec<_> =
        kept.iter().map(|file| (file.path.clone(), fs::read_to_string(&file.old_content).unwrap())).collect();
    assert_eq!(contents, [("a".into(), "old a".to_owned()), ("sub/b".into(), "old b".to_owned())]);
    assert_eq!(bench.read("a").as_deref(), Some("saved after"));
    assert_eq!(bench.read("sub/b").as_deref(), Some("made again"));
}

#[test]
fn no_path_leads_through_a_link_or_out_of_the_folder() {
    let bench = Bench::new();
    std::os::unix::fs::symlink("/tmp", bench.root("link")).unwrap();
    for bad in ["link/x", "a/x", "../x", ".git/config", "sub/.git/x"] {
        let found = look(&bench.root(""), &[PathBuf::from(bad)]).unwrap();
        assert!(found.is_err(), "{bad}");
    }
    // A file that the merge removes may become a folder.
    assert!(look(&bench.root(""), &[PathBuf::from("a"), PathBuf::from("a/x")]).unwrap().is_ok());
}

#[test]
fn modes_are_the_old_ones_but_for_the_executable_bit() {
    assert_eq!(mode_like(0o100_640, 0o100_644), 0o640);
    assert_eq!(mode_like(0o100_640, 0o100_755), 0o750);
    assert_eq!(mode_like(0o100_755, 0o100_644), 0o644);
}
