//! The languages of cells, and the runner of each.

use std::sync::Arc;

/// What stands before the name of a kernel of Jupyter.
const JUPYTER: &str = "jupyter:";

/// A language of cells.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python, from 3.10 on.
    Python,
    /// JavaScript, by Node.
    JavaScript,
    /// Whatever a kernel of Jupyter takes, by the user's own `jupyter_client`.
    Jupyter(JupyterKernel),
}

/// The name of a kernel of Jupyter, such as `ir`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JupyterKernel(Arc<str>);

impl JupyterKernel {
    /// The name, as Jupyter knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.trim_start_matches(JUPYTER)
    }
}

impl Language {
    /// Those that are there unasked where they have an interpreter, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::Python, Self::JavaScript];

    /// Its name in calls.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Python => "py",
            Self::JavaScript => "js",
            Self::Jupyter(JupyterKernel(name)) => name,
        }
    }

    /// Its name for people.
    pub(crate) fn title(&self) -> &str {
        match self {
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::Jupyter(JupyterKernel(name)) => name,
        }
    }

    /// The language of a name in calls or settings, or of one that models use.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        if let Some(kernel) = name.strip_prefix(JUPYTER) {
            // The names that Jupyter allows.
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            let is_valid = !kernel.is_empty() && kernel.bytes().all(is_name);
            return is_valid.then(|| Self::Jupyter(JupyterKernel(name.into())));
        }
        match name.to_ascii_lowercase().as_str() {
            "py" | "python" | "python3" => Some(Self::Python),
            "js" | "javascript" | "node" => Some(Self::JavaScript),
            _ => None,
        }
    }

    /// The program of the kernel, which the one of its [arguments](Self::arguments) gets as its first record.
    pub(crate) const fn runner(&self) -> &'static str {
        match self {
            Self::Python => concat!(include_str!("runners/displays.py"), include_str!("runners/python.py")),
            Self::JavaScript => include_str!("runners/node.js"),
            Self::Jupyter(_) => {
                concat!(include_str!("runners/displays.py"), include_str!("runners/jupyter.py"))
            }
        }
    }

    /// The arguments of the interpreter: a few lines that read the runner. No file is written, and nothing that could be changed on the way.
    pub(crate) fn arguments(&self, memory_bytes: u64) -> Vec<String> {
        match self {
            Self::Python | Self::Jupyter(_) => {
                ["-u", "-c", include_str!("runners/boot.py")].map(str::to_owned).to_vec()
            }
            Self::JavaScript => {
                let mut arguments = Vec::new();
                if memory_bytes > 0 {
                    arguments.push(format!("--max-old-space-size={}", (memory_bytes >> 20).max(64)));
                }
                // The interrupt of a loop in the callback of a timer leaves Node's account of callbacks behind, which is of no use here.
                arguments.push("--no-force-async-hooks-checks".to_owned());
                arguments.extend(["-e", include_str!("runners/boot.js")].map(str::to_owned));
                arguments
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for language in Language::ALL {
            assert_eq!(Language::of(language.name()), Some(language.clone()));
            assert_eq!(Language::of(language.title()), Some(language));
        }
        assert_eq!(Language::of("ruby"), None);
        let Some(Language::Jupyter(kernel)) = Language::of("jupyter:julia-1.10") else { panic!("no kernel") };
        assert_eq!(kernel.name(), "julia-1.10");
        assert_eq!(Language::Jupyter(kernel).name(), "jupyter:julia-1.10");
        for name in ["jupyter:", "jupyter:a b", "jupyter", "jupyter:../x"] {
            assert_eq!(Language::of(name), None, "{name}");
        }
    }
}
