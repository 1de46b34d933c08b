//! The languages whose code can be searched.

/// A language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageFacts {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// The extensions of its files, without the dot, in lower case.
    pub extensions: &'static [&'static str],
    /// Extensions of another language whose files count as its own where a call names it.
    pub also: &'static [&'static str],
    /// A language that a call by this name means, too.
    pub with: Option<&'static str>,
}

const fn language(
    name: &'static str,
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
) -> LanguageFacts {
    LanguageFacts { name, aliases, extensions, also: &[], with: None }
}

/// All languages, by their names.
pub const LANGUAGES: &[LanguageFacts] = &[
    language("bash", &["sh", "shell"], &["sh", "bash", "bats", "ksh", "zsh"]),
    language("c", &[], &["c", "h"]),
    LanguageFacts {
        also: &["h"],
        ..language(
            "cpp",
            &["c++", "cc", "cxx"],
            &["cpp", "cc", "cxx", "c++", "hpp", "hh", "hxx", "cu", "ino"],
        )
    },
    language("csharp", &["c#", "cs"], &["cs"]),
    language("css", &[], &["css"]),
    language("elixir", &["ex"], &["ex", "exs"]),
    language("go", &["golang"], &["go"]),
    language("hcl", &["terraform", "tf"], &["hcl", "tf", "tfvars", "nomad"]),
    language("html", &[], &["html", "htm", "xhtml"]),
    language("java", &[], &["java"]),
    language("javascript", &["js", "jsx", "node"], &["js", "jsx", "mjs", "cjs"]),
    language("json", &[], &["json"]),
    language("kotlin", &["kt"], &["kt", "kts", "ktm"]),
    language("lua", &[], &["lua"]),
    language("php", &[], &["php"]),
    language("python", &["py"], &["py", "pyi", "bzl", "bazel"]),
    language("ruby", &["rb"], &["rb", "rbw", "gemspec", "rake"]),
    language("rust", &["rs"], &["rs"]),
    language("scala", &[], &["scala", "sc", "sbt"]),
    language("swift", &[], &["swift"]),
    language("toml", &[], &["toml"]),
    language("tsx", &[], &["tsx"]),
    LanguageFacts { with: Some("tsx"), ..language("typescript", &["ts"], &["ts", "mts", "cts"]) },
    language("yaml", &["yml"], &["yaml", "yml"]),
];

/// The language with this name, in any case.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static LanguageFacts> {
    let name = name.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.name == name || language.aliases.contains(&name.as_str()))
}

/// The language of a file with this extension, in any case.
#[must_use]
pub fn by_extension(extension: &str) -> Option<&'static LanguageFacts> {
    let extension = extension.to_ascii_lowercase();
    LANGUAGES.iter().find(|language| language.extensions.contains(&extension.as_str()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_and_extensions_mean_one_language() {
        let mut names = HashSet::new();
        let mut extensions = HashSet::new();
        for language in LANGUAGES {
            for name in std::iter::once(&language.name).chain(language.aliases) {
                assert!(names.insert(*name) && *name == name.to_ascii_lowercase(), "{name}");
                assert_eq!(by_name(&name.to_uppercase()), Some(language));
            }
            for extension in language.extensions {
                assert!(extensions.insert(*extension), "{extension}");
                assert_eq!(by_extension(extension), Some(language));
            }
            assert!(language.with.is_none_or(|with| by_name(with).is_some()));
        }
        assert!(LANGUAGES.is_sorted_by_key(|language| language.name));
        assert_eq!((by_name("cobol"), by_extension("cob")), (None, None));
    }
}
