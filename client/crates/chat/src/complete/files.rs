//! Finding files of a folder by some letters of their path. Ignore files count, within bounds: the folder may be a stranger's.

use std::{
    collections::VecDeque,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use agentd_client_text::FuzzyQuery;
use agentd_ignore_files::{CompiledRules, RulesBudget};
use agentd_safe_open::AcceptedOwner;

/// How many files and folders are looked at.
const MOST_LOOKED_AT: usize = 50_000;

/// How many files are offered.
const MOST_OFFERED: usize = 50;

/// The names of ignore files, the weakest first.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".ignore"];

/// The rules that count in a folder: its own, and those of the folders above.
struct Rules {
    above: Option<Rc<Rules>>,
    own: Vec<CompiledRules>,
}

impl Rules {
    fn of(folder: &Path, above: Option<Rc<Self>>, budget: &Arc<RulesBudget>) -> Rc<Self> {
        // A file that cannot be used ignores nothing: it only offers more.
        let read =
            |name: &str| agentd_ignore_files::read(&folder.join(name), AcceptedOwner::Anybody).ok().flatten();
        let own = IGNORE_FILES
            .iter()
            .filter_map(|name| CompiledRules::compile(folder, &read(name)?, budget).ok()?);
        Rc::new(Self { own: own.collect(), above })
    }

    fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        for rules in self.own.iter().rev() {
            let found = rules.rules().matched(path, is_folder);
            if !found.is_none() {
                return found.is_ignore();
            }
        }
        self.above.as_ref().is_some_and(|above| above.ignores(path, is_folder))
    }
}

/// The files and folders below `folder` whose path has the letters, the best first; folders end with `/`. Blocks.
pub(crate) fn find(folder: &Path, query: &str) -> Vec<String> {
    // A query that goes up or begins at the root looks in that folder alone.
    if query.starts_with(['/', '~']) || query.starts_with("../") {
        return in_one_folder(folder, query);
    }
    let budget = Arc::new(RulesBudget::default());
    let mut open: VecDeque<(PathBuf, Rc<Rules>)> = VecDeque::new();
    open.push_back((folder.to_owned(), Rules::of(folder, None, &budget)));
    let fuzzy = FuzzyQuery::new(query);
    let mut found: Vec<(i64, String)> = Vec::new();
    let mut looked_at = 0;
    while let Some((here, rules)) = open.pop_front() {
        let Ok(entries) = fs::read_dir(&here) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > MOST_LOOKED_AT {
                return best(found);
            }
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if entry.file_name() == ".git" || rules.ignores(&path, kind.is_dir()) {
                continue;
            }
            if let Some(name) = path.strip_prefix(folder).ok().and_then(Path::to_str)
                && let Some(score) = fuzzy.score_of_name(name)
                && !name.contains(agentd_protocol::terminal_text::steers)
            {
                found.push((score, if kind.is_dir() { format!("{name}/") } else { name.to_owned() }));
            }
            if kind.is_dir() {
                let below = Rules::of(&path, Some(Rc::clone(&rules)), &budget);
                open.push_back((path, below));
            }
        }
    }
    best(found)
}

fn in_one_folder(base: &Path, query: &str) -> Vec<String> {
    let (head, tail) = query.rsplit_once('/').map_or(("", query), |(head, tail)| (head, tail));
    let place = match (head.strip_prefix('~'), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest.trim_start_matches('/')),
        _ if query.starts_with('/') => PathBuf::from(format!("/{head}")),
        _ => base.join(head),
    };
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let fuzzy = FuzzyQuery::new(tail);
    let found = entries.flatten().take(MOST_LOOKED_AT).filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let score = fuzzy.score_of_name(&name)?;
        let is_folder = entry.file_type().ok()?.is_dir();
        (!name.contains(agentd_protocol::terminal_text::steers))
            .then(|| (score, format!("{head}/{name}{}", if is_folder { "/" } else { "" })))
    });
    best(found.collect())
}

fn best(mut found: Vec<(i64, String)>) -> Vec<String> {
    found.sort_by(|(left, one), (right, other)| right.cmp(left).then_with(|| one.cmp(other)));
    found.truncate(MOST_OFFERED);
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_not_offered() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".gitignore", "target/\n*.o\n");
        write("sub/.gitignore", "!keep.o\n");
        write("target/main.rs", "");
        write("src/main.rs", "");
        write("sub/keep.o", "");
        write("sub/main.o", "");
        write(".git/main", "");
        assert_eq!(find(folder.path(), "main"), ["src/main.rs"]);
        assert_eq!(find(folder.path(), "keep"), ["sub/keep.o"]);
        assert_eq!(find(&folder.path().join("sub"), "../src/ma"), ["../src/main.rs"]);
        assert!(find(folder.path(), "").contains(&"src/".to_owned()));
    }
}
