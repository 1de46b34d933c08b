//! Values of the front matter, of whatever kind they were written.

use std::{fmt, path::Path};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::Spanned;

/// Something that is wrong in the front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontMatterProblem {
    /// The line of the file, from 1, where it is known.
    pub line: Option<u32>,
    /// The fault.
    pub message: String,
}

impl FrontMatterProblem {
    /// A remark on a file that is used all the same.
    #[must_use]
    pub fn remark(self, kind: DiagnosticKind, path: &Path) -> Diagnostic {
        Diagnostic::warning(kind, self.message).at(path).line(self.line)
    }

    /// Why a file is not used. `what` is what it would be.
    #[must_use]
    pub fn refusal(self, kind: DiagnosticKind, path: &Path, what: &str) -> Diagnostic {
        let message = format!("{}; the {what} is not used", self.message);
        Diagnostic::warning(kind, message).level(DiagnosticLevel::Error).at(path).line(self.line)
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Field {
    /// A text, or a number as a text.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A list; `None` for an item that is no text.
    List(Vec<Option<String>>),
    /// An object.
    Mapping,
    /// `null`, or nothing after the colon.
    Nothing,
}

/// The text of a field that should be one.
pub(super) fn text(
    field: Option<Spanned<Field>>,
    name: &str,
    problems: &mut Vec<FrontMatterProblem>,
) -> Option<String> {
    let Spanned { value, referenced, .. } = field?;
    let what = match value {
        Field::Text(text) => return Some(text.trim().to_owned()),
        Field::Flag(flag) => return Some(flag.to_string()),
        Field::Nothing => return None,
        Field::List(_) => "a list",
        Field::Mapping => "an object",
    };
    let message = format!("\"{name}\" is {what} and is not used; expected a text");
    problems.push(FrontMatterProblem { line: u32::try_from(referenced.line()).ok(), message });
    None
}

/// The text of a field that shows arguments, often written in brackets that are a list to YAML.
pub(super) fn hint(
    field: Option<Spanned<Field>>,
    name: &str,
    problems: &mut Vec<FrontMatterProblem>,
) -> Option<String> {
    if let Some(Spanned { value: Field::List(items), .. }) = &field
        && let Some(items) = items.iter().map(Option::as_deref).collect::<Option<Vec<_>>>()
    {
        return Some(format!("[{}]", items.join(", ")));
    }
    text(field, name, problems)
}

/// The value of a field that is `true` or `false`, which is its default.
pub(super) fn flag(
    field: Option<Spanned<Field>>,
    name: &str,
    problems: &mut Vec<FrontMatterProblem>,
) -> bool {
    let Some(Spanned { value, referenced, .. }) = field else { return false };
    match value {
        Field::Flag(flag) => return flag,
        Field::Nothing => return false,
        // In quotes.
        Field::Text(text) if text == "true" => return true,
        Field::Text(text) if text == "false" => return false,
        Field::Text(_) | Field::List(_) | Field::Mapping => {}
    }
    let message = format!("\"{name}\" is neither true nor false and counts as false");
    problems.push(FrontMatterProblem { line: u32::try_from(referenced.line()).ok(), message });
    false
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(Field::Text(text.to_owned()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Field, E> {
        Ok(Field::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Field, E> {
        Ok(Field::Text(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Field, E> {
        Ok(Field::Text(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Field, E> {
        Ok(Field::Text(number.to_string()))
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Field, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element::<Self::Value>()? {
            items.push(match item {
                Field::Text(text) => Some(text),
                Field::Flag(flag) => Some(flag.to_string()),
                Field::List(_) | Field::Mapping | Field::Nothing => None,
            });
        }
        Ok(Field::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Mapping)
    }
}
