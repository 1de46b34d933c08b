//! The block of YAML between two lines of `---` at the beginning of a Markdown file.
//!
//! Such files are written by hand and were often only tried with forgiving programs. Almost valid YAML is read as it was meant,
//! and reported.

mod field;
mod mapping;

use std::fmt;

use agentd_protocol::text_bounds;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{
    Error, Options, Spanned, UserMessageFormatter, alias_limits, budget, from_str_with_options, options,
};

use self::field::Field;
pub use self::{
    field::FrontMatterProblem,
    mapping::{FrontMatterFields, fields},
};

/// The longest front matter that is read: 32 KiB.
const MAX_BYTES: usize = 32 * 1024;

/// The longest quotation of what is wrong, in bytes: a problem says the value, which may be all there is.
const MAX_SAID: usize = 200;

/// The limit for the expansion of aliases, in events.
const MAX_EVENTS: usize = 10_000;

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

fn yaml_options() -> Options {
    options! {
        budget: budget! {
            max_events: MAX_EVENTS,
            max_recorded_anchor_events: MAX_EVENTS,
            max_recorded_anchor_bytes: 1 << 20,
            flow_nesting_limit: 32,
        },
        alias_limits: alias_limits! { max_total_replayed_events: MAX_EVENTS },
        strict_booleans: true,
        with_snippet: false,
    }
}

fn not_yaml(error: &Error) -> FrontMatterProblem {
    let line = error.location().map(|place| place.line()).filter(|line| *line > 0);
    let message = if is_too_much(error) {
        "the front matter refers to itself too often, or has too many values".to_owned()
    } else {
        let said = error.render_with_formatter(&UserMessageFormatter);
        // The places are told apart from the message.
        let said = said.split_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        format!(
            "the front matter is not valid YAML: {}",
            text_bounds::without_middle(said.to_owned(), MAX_SAID)
        )
    };
    FrontMatterProblem { line: line.and_then(|line| u32::try_from(line).ok()), message }
}

/// Returns whether the text exceeds the limits, which it does not show itself.
fn is_too_much(error: &Error) -> bool {
    match error {
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => true,
        Error::AliasError { error, .. } => is_too_much(error),
        _ => false,
    }
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

/// Repairs texts whose authors did not know them to be YAML, such as `description: Use when: asked`: the same lines, with every plain value of a key at the left margin in quotes.
fn quote_values(yaml: &str) -> String {
    yaml.split('\n').map(quote_value).collect::<Vec<_>>().join("\n")
}

fn quote_value(line: &str) -> String {
    let untouched = || line.to_owned();
    let Some((key, value)) = line.split_once(':') else { return untouched() };
    let is_key = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'));
    let value = value.trim();
    // A value that is quoted or continues below is YAML that its author knew. So is a list without its end, but not a text that
    // begins with a word in brackets.
    let is_list = match value.chars().next() {
        Some('[') => !value.trim_end_matches(']').contains(']'),
        Some('{') => !value.trim_end_matches('}').contains('}'),
        _ => false,
    };
    if !is_key || is_list || value.is_empty() || value.starts_with(['"', '\'', '|', '>']) {
        return untouched();
    }
    let quoted = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\t', "\\t");
    format!("{key}: \"{quoted}\"")
}

#[cfg(test)]
mod tests;
