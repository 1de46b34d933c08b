//! Whatever the child and the user do: nothing of the user's uncommitted work is lost.

use std::{collections::BTreeMap, fs};

use agentd_isolation::CaptureMode;
use proptest::prelude::*;

use crate::bench::{Bench, files, write};

const NAMES: [&str; 6] = ["a", "b", "dir/c", "dir/d", "dir/e/f", "g h"];

/// What is done to a file. A line of the user's or the child's is unique, so that it can be looked for.
#[derive(Debug, Clone)]
enum Edit {
    Line(usize),
    Append,
    Delete,
    Replace,
    Make(u8),
    Executable,
    Stage,
}

fn edits() -> impl Strategy<Value = Vec<(usize, Edit)>> {
    let edit = prop_oneof![
        3 => (0..20_usize).prop_map(Edit::Line),
        1 => Just(Edit::Append),
        1 => Just(Edit::Delete),
        1 => Just(Edit::Replace),
        1 => (0..3_u8).prop_map(Edit::Make),
        1 => Just(Edit::Executable),
        1 => Just(Edit::Stage),
    ];
    prop::collection::vec((0..NAMES.len(), edit), 0..6)
}

fn carry_out(bench: &Bench, root: &std::path::Path, edits: &[(usize, Edit)], who: &str) {
    for (count, (file, edit)) in edits.iter().enumerate() {
        let path = root.join(NAMES[*file]);
        let text = fs::read_to_string(&path).unwrap_or_default();
        match edit {
            Edit::Line(number) => {
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                let Some(line) = lines.get_mut(*number) else { continue };
                *line = format!("{who} {count}");
                write(&path, lines.join("\n") + "\n");
            }
            Edit::Append => write(&path, format!("{text}{who} {count}\n")),
            Edit::Delete => drop(fs::remove_file(&path)),
            Edit::Replace => write(&path, format!("{who} {count}\n")),
            Edit::Make(number) => write(&root.join(format!("new{number}")), format!("{who} {count}\n")),
            Edit::Executable if path.exists() => crate::bench::set_mode(&path, 0o755),
            Edit::Executable => {}
            Edit::Stage => drop(bench.run_in(root, &["add", "--all"])),
        }
    }
}

async fn check(
    before: &[(usize, Edit)],
    child: &[(usize, Edit)],
    meanwhile: &[(usize, Edit)],
    commits: bool,
    mode: CaptureMode,
) {
    let lines: String = (0..20).map(|number| format!("{number}\n")).collect();
    let bench = Bench::new(&NAMES.map(|name| (name, lines.as_str())));
    carry_out(&bench, &bench.path(""), before, "user before");
    let mut copy = bench.begin("one").await;
    assert_eq!(files(copy.root()), files(&bench.path("")));
    let start = files(copy.root());
    carry_out(&bench, copy.root(), child, "child");
    if commits {
        bench.run_in(copy.root(), &["add", "--all"]);
        bench.run_in(copy.root(), &["commit", "--quiet", "--allow-empty", "-m", "child"]);
    }
    let end = files(copy.root());
    carry_out(&bench, &bench.path(""), meanwhile, "user meanwhile");
    let captured = bench.capture(&mut copy, mode).await;
    copy.remove().await.unwrap();
    let state = bench.state();
    let merged = bench.merge(&captured).await.unwrap();
    let after = bench.state();
    if !merged.applied {
        assert!(merged.conflict.is_some());
        assert_eq!(after, state, "a conflict touches nothing");
        return;
    }
    // Files that the child left alone are the user's, byte for byte; those that the user left alone are the child's.
    let names: std::collections::BTreeSet<_> =
        start.keys().chain(end.keys()).chain(state.files.keys()).collect();
    let mut expected = BTreeMap::new();
    for name in names {
        let (was, childs, users, is) =
            (start.get(name), end.get(name), state.files.get(name), after.files.get(name));
        if was == childs {
            assert_eq!(is, users, "a file of the user's");
        } else if was == users {
            assert_eq!(is, childs, "a file of the child's");
        } else {
            // Both: no line that the user has written since the copy was made is lost.
            let text = |file: Option<&(char, Vec<u8>)>| {
                String::from_utf8_lossy(&file.cloned().unwrap_or_default().1).into_owned()
            };
            let (users, is) = (text(users), text(is));
            for line in users.lines().filter(|line| line.starts_with("user meanwhile")) {
                assert!(is.contains(line), "{line} is lost");
            }
        }
        if let Some(file) = is {
            expected.insert(name.clone(), file.clone());
        }
    }
    assert_eq!(after.files, expected);
    bench.check_clean();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_of_the_users_is_lost(
        before in edits(),
        child in edits(),
        meanwhile in edits(),
        commits in any::<bool>(),
        branch in any::<bool>(),
    ) {
        let mode = if branch { CaptureMode::Branch } else { CaptureMode::Patch };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(check(&before, &child, &meanwhile, commits, mode));
    }
}
