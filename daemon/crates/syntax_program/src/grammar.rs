//! The grammars, by the names of their languages.

use std::borrow::Cow;

use ast_grep_core::{
    Language, Pattern, PatternError,
    matcher::PatternBuilder,
    tree_sitter::{LanguageExt, StrDoc, TSLanguage},
};
use ast_grep_language::SupportLang;

/// A grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Grammar {
    /// One that comes with rules of its own for names in patterns.
    Supported(SupportLang),
    /// TOML.
    Toml,
}

impl Grammar {
    /// The grammar of a language, by its name.
    pub(crate) fn of(language: &str) -> Option<Self> {
        use SupportLang as L;
        Some(Self::Supported(match language {
            "bash" => L::Bash,
            "c" => L::C,
            "cpp" => L::Cpp,
            "csharp" => L::CSharp,
            "css" => L::Css,
            "elixir" => L::Elixir,
            "go" => L::Go,
            "hcl" => L::Hcl,
            "html" => L::Html,
            "java" => L::Java,
            "javascript" => L::JavaScript,
            "json" => L::Json,
            "kotlin" => L::Kotlin,
            "lua" => L::Lua,
            "php" => L::Php,
            "python" => L::Python,
            "ruby" => L::Ruby,
            "rust" => L::Rust,
            "scala" => L::Scala,
            "swift" => L::Swift,
            "tsx" => L::Tsx,
            "typescript" => L::TypeScript,
            "yaml" => L::Yaml,
            "toml" => return Some(Self::Toml),
            _ => return None,
        }))
    }
}

/// The letter that stands for `$` in patterns of TOML, whose bare keys have ASCII letters, digits, `_` and `-` alone.
const TOML_NAMES: char = '_';

impl Language for Grammar {
    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        match self {
            Self::Supported(language) => language.pre_process_pattern(query),
            Self::Toml => Cow::Owned(query.replace('$', &TOML_NAMES.to_string())),
        }
    }

    fn meta_var_char(&self) -> char {
        match self {
            Self::Supported(language) => language.meta_var_char(),
            Self::Toml => '$',
        }
    }

    fn expando_char(&self) -> char {
        match self {
            Self::Supported(language) => language.expando_char(),
            Self::Toml => TOML_NAMES,
        }
    }

    fn kind_to_id(&self, kind: &str) -> u16 {
        self.get_ts_language().id_for_node_kind(kind, true)
    }

    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.get_ts_language().field_id_for_name(field).map(|id| id.get())
    }

    fn build_pattern(&self, builder: &PatternBuilder<'_>) -> Result<Pattern, PatternError> {
        builder.build(|source| StrDoc::try_new(source, *self))
    }
}

impl LanguageExt for Grammar {
    fn get_ts_language(&self) -> TSLanguage {
        match self {
            Self::Supported(language) => language.get_ts_language(),
            Self::Toml => tree_sitter_toml_ng::LANGUAGE.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_syntax::LANGUAGES;

    use super::*;

    #[test]
    fn every_language_has_a_grammar_that_fits_this_parser() {
        for language in LANGUAGES {
            let grammar = Grammar::of(language.name).unwrap();
            assert!(StrDoc::try_new("a", grammar).is_ok(), "{}", language.name);
        }
        assert_eq!(Grammar::of("cobol"), None);
    }
}
