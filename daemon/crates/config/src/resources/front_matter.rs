//! The block of YAML between two lines of `---` at the beginning of a Markdown file.
//!
//! Such files are written by hand and were often only tried with forgiving programs. Almost valid YAML is read as it was meant,
//! and reported.

mod field;
mod mapping;
mod yaml;

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{Spanned, from_str_with_options};

use self::{
    field::Field,
    yaml::{MAX_BYTES, is_too_much, not_yaml, quote_values, yaml_options},
};
pub use self::{
    field::FrontMatterProblem,
    mapping::{FrontMatterFields, fields},
};

/// A file in its two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The text between the lines of `---`; `None` when the file does not begin with one, or has no second one. Its first line
    /// is the rest of the file's first line, so that its line numbers are those of the file.
    pub yaml: Option<&'a str>,
    /// All that follows, trimmed; without front matter the whole text as it is.
    pub body: &'a str,
}

/// Takes a text with LF line ends apart.
#[must_use]
pub fn split(text: &str) -> Parts<'_> {
    let parts = text.strip_prefix("---").and_then(|rest| rest.split_once("\n---"));
    match parts {
        Some((yaml, body)) => Parts { yaml: Some(yaml), body: body.trim() },
        None => Parts { yaml: None, body: text },
    }
}

/// The front matter of a skill or a prompt template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Attributes {
    /// `name`.
    pub(super) name: Option<String>,
    /// `description`.
    pub(super) description: Option<String>,
    /// `argument-hint`.
    pub(super) argument_hint: Option<String>,
    /// `disable-model-invocation`.
    pub(super) disable_model_invocation: bool,
    /// Faults that do not keep the rest from being used.
    pub(super) problems: Vec<FrontMatterProblem>,
}

/// Reads the YAML of [`split`].
///
/// # Errors
/// What is wrong with it, when it cannot be read at all.
pub(super) fn attributes(yaml: &str) -> Result<Attributes, FrontMatterProblem> {
    if yaml.len() > MAX_BYTES {
        let message =
            format!("the front matter is {} bytes long, more than the {MAX_BYTES} that are read", yaml.len());
        return Err(FrontMatterProblem { line: None, message });
    }
    let error = match from_str_with_options::<Fields>(yaml, yaml_options()) {
        Ok(written) => return Ok(written.attributes()),
        Err(error) => error,
    };
    let problem = not_yaml(&error);
    if is_too_much(&error) {
        return Err(problem);
    }
    let repaired = quote_values(yaml);
    let Ok(written) = from_str_with_options::<Fields>(&repaired, yaml_options()) else {
        return Err(problem);
    };
    let mut attributes = written.attributes();
    let message = format!("{}; it is read as if the value were in quotes", problem.message);
    attributes.problems.insert(0, FrontMatterProblem { message, ..problem });
    Ok(attributes)
}

/// The keys that mean something here, as they were written; others are for other programs.
#[derive(Default)]
struct Fields {
    name: Option<Spanned<Field>>,
    description: Option<Spanned<Field>>,
    argument_hint: Option<Spanned<Field>>,
    disable_model_invocation: Option<Spanned<Field>>,
    /// True if there are no keys at all: it is a list, or a plain text.
    is_something_else: bool,
}

impl Fields {
    fn something_else() -> Self {
        Self { is_something_else: true, ..Self::default() }
    }

    fn attributes(self) -> Attributes {
        let mut problems = Vec::new();
        if self.is_something_else {
            let message = "the front matter is not made of \"key: value\" and is not used".to_owned();
            problems.push(FrontMatterProblem { line: Some(1), message });
        }
        Attributes {
            name: field::text(self.name, "name", &mut problems),
            description: field::text(self.description, "description", &mut problems),
            argument_hint: field::hint(self.argument_hint, "argument-hint", &mut problems),
            disable_model_invocation: field::flag(
                self.disable_model_invocation,
                "disable-model-invocation",
                &mut problems,
            ),
            problems,
        }
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"key: value\" lines")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<String>()? {
            let field = match key.as_str() {
                "name" => &mut fields.name,
                "description" => &mut fields.description,
                "argument-hint" => &mut fields.argument_hint,
                "disable-model-invocation" => &mut fields.disable_model_invocation,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *field = Some(map.next_value()?);
        }
        Ok(fields)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Fields, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Fields::something_else())
    }

    fn visit_str<E>(self, _: &str) -> Result<Fields, E> {
        Ok(Fields::something_else())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Fields, E> {
        Ok(Fields::something_else())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Fields, E> {
        Ok(Fields::something_else())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Fields, E> {
        Ok(Fields::something_else())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Fields, E> {
        Ok(Fields::something_else())
    }

    fn visit_unit<E>(self) -> Result<Fields, E> {
        Ok(Fields::default())
    }
}

#[cfg(test)]
mod tests;
