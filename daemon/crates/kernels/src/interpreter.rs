//! Which program runs a language: looked for without starting anything.

use std::{
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::language::Language;

/// Where interpreters are looked for.
#[derive(Debug, Clone, Copy)]
pub struct InterpreterSources<'a> {
    /// The complete environment of the session's child processes.
    pub environment: &'a [(OsString, OsString)],
    /// The session's folder, whose `.venv` and `venv` count; `None` where its project is not trusted.
    pub project: Option<&'a Path>,
    /// The setting `eval.python`, absolute.
    pub python: Option<&'a Path>,
    /// The setting `eval.javascript`, absolute.
    pub javascript: Option<&'a Path>,
}

impl InterpreterSources<'_> {
    /// The interpreter of a language: the one of the settings, even if it is not there; then for Python `VIRTUAL_ENV`, `CONDA_PREFIX`, `.venv`
    /// and `venv` of the project; then the search path. Looks at files; blocks briefly.
    #[must_use]
    pub fn find(&self, language: &Language) -> Option<PathBuf> {
        match language {
            Language::Python | Language::Jupyter(_) => {
                if let Some(set) = self.python {
                    return Some(set.to_owned());
                }
                let of_variables = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| {
                    self.variable(name).filter(|folder| !folder.is_empty()).map(PathBuf::from)
                });
                let of_project =
                    self.project.into_iter().flat_map(|cwd| [cwd.join(".venv"), cwd.join("venv")]);
                of_variables
                    .chain(of_project)
                    .map(|folder| folder.join("bin/python"))
                    .find(|path| path.is_absolute() && is_program(path))
                    .or_else(|| self.on_path(&["python3", "python"]))
            }
            Language::JavaScript => match self.javascript {
                Some(set) => Some(set.to_owned()),
                None => self.on_path(&["node"]),
            },
        }
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_os_str())
    }

    fn on_path(&self, names: &[&str]) -> Option<PathBuf> {
        let path = self.variable("PATH")?;
        let in_folders = |name: &&str| {
            std::env::split_paths(path)
                .map(|folder| folder.join(name))
                .find(|found| found.is_absolute() && is_program(found))
        };
        names.iter().find_map(in_folders)
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn program(folder: &Path, name: &str) -> PathBuf {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn the_nearest_one_counts() {
        let home = tempfile::tempdir().unwrap();
        let (cwd, bin) = (home.path().join("project"), home.path().join("bin"));
        let mut environment: Vec<(OsString, OsString)> = vec![("PATH".into(), bin.clone().into())];
        let find = |environment: &[(OsString, OsString)], project, python| {
            InterpreterSources { environment, project, python, javascript: None }.find(&Language::Python)
        };
        assert_eq!(find(&environment, Some(&*cwd), None), None);
        let on_path = program(&bin, "python3");
        assert_eq!(find(&environment, Some(&*cwd), None), Some(on_path.clone()));
        let second = program(&cwd.join("venv/bin"), "python");
        assert_eq!(find(&environment, Some(&*cwd), None), Some(second));
        let first = program(&cwd.join(".venv/bin"), "python");
        assert_eq!(find(&environment, Some(&*cwd), None), Some(first));
        assert_eq!(find(&environment, None, None), Some(on_path), "the project is not trusted");
        environment.push(("CONDA_PREFIX".into(), home.path().join("conda").into()));
        let conda = program(&home.path().join("conda/bin"), "python");
        assert_eq!(find(&environment, Some(&*cwd), None), Some(conda));
        let set = Path::new("/no/such/python");
        assert_eq!(find(&environment, Some(&*cwd), Some(set)), Some(set.to_owned()));
    }

    #[test]
    fn node_is_found_on_the_path_alone() {
        let home = tempfile::tempdir().unwrap();
        let environment = vec![("PATH".into(), home.path().into())];
        let sources =
            InterpreterSources { environment: &environment, project: None, python: None, javascript: None };
        assert_eq!(sources.find(&Language::JavaScript), None);
        let node = program(home.path(), "node");
        assert_eq!(sources.find(&Language::JavaScript), Some(node));
    }
}
