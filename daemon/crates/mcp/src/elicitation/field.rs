//! A field of a form. Pure.

use serde_json::{Value, json};

/// A field.
#[derive(Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    title: Option<String>,
    description: Option<String>,
    kind: Kind,
    pub(super) is_required: bool,
    /// What counts where the user says nothing. Of the kind of the field.
    pub(super) default: Option<Value>,
}

#[derive(Debug, PartialEq)]
enum Kind {
    Text {
        shortest: Option<u64>,
        longest: Option<u64>,
        format: Option<String>,
    },
    Number {
        is_whole: bool,
        least: Option<f64>,
        most: Option<f64>,
    },
    Boolean,
    /// One of several.
    Choice(Vec<Choice>),
    /// Several of several.
    Choices {
        choices: Vec<Choice>,
        least: Option<u64>,
        most: Option<u64>,
    },
}

/// A value, and how it is shown.
#[derive(Debug, PartialEq)]
struct Choice {
    value: String,
    title: String,
}

const YES: &str = "Yes";
const NO: &str = "No";

impl Field {
    /// Reads a property of a form's schema; `None` where it is of no kind that forms have.
    pub(super) fn read(name: &str, schema: &Value, is_required: bool) -> Option<Self> {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let amount = |key: &str| schema.get(key).and_then(Value::as_f64);
        let kind = match text("type")?.as_str() {
            "string" => match choices(schema)? {
                choices if choices.is_empty() => Kind::Text {
                    shortest: count("minLength"),
                    longest: count("maxLength"),
                    format: text("format"),
                },
                choices => Kind::Choice(choices),
            },
            kind @ ("number" | "integer") => {
                let is_whole = kind == "integer";
                Kind::Number { is_whole, least: amount("minimum"), most: amount("maximum") }
            }
            "boolean" => Kind::Boolean,
            "array" => {
                let choices = choices(schema.get("items")?)?;
                if choices.is_empty() {
                    return None;
                }
                Kind::Choices { choices, least: count("minItems"), most: count("maxItems") }
            }
            _ => return None,
        };
        let mut field = Self {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            kind,
            is_required,
            default: None,
        };
        field.default = schema.get("default").filter(|value| field.fits(value)).cloned();
        Some(field)
    }

    /// Whether a value is of the kind of the field.
    pub(super) fn fits(&self, value: &Value) -> bool {
        let is_one_of =
            |choices: &[Choice], value: &Value| choices.iter().any(|it| *value == it.value.as_str());
        match &self.kind {
            Kind::Text { .. } => value.is_string(),
            Kind::Number { is_whole, .. } => {
                value.is_number() && (!is_whole || value.as_f64().is_some_and(|it| it.fract() == 0.0))
            }
            Kind::Boolean => value.is_boolean(),
            Kind::Choice(choices) => is_one_of(choices, value),
            Kind::Choices { choices, .. } => {
                value.as_array().is_some_and(|values| values.iter().all(|value| is_one_of(choices, value)))
            }
        }
    }

    /// The question.
    pub(super) fn title(&self) -> String {
        let name = self.title.as_deref().unwrap_or(&self.name);
        match &self.description {
            Some(description) => format!("{name}: {description}"),
            None => name.to_owned(),
        }
    }

    /// What is chosen from; `None` for what is typed.
    pub(super) fn options(&self) -> Option<Vec<String>> {
        match &self.kind {
            Kind::Boolean => Some(vec![YES.to_owned(), NO.to_owned()]),
            Kind::Choice(choices) => Some(choices.iter().map(|choice| choice.title.clone()).collect()),
            _ => None,
        }
    }

    /// What is shown while nothing is typed.
    pub(super) fn placeholder(&self) -> Option<String> {
        let default = self.default.as_ref().map(|default| match default {
            Value::String(text) => text.clone(),
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            value => value.to_string(),
        });
        match &self.kind {
            Kind::Choices { choices, .. } => {
                let titles: Vec<&str> = choices.iter().map(|choice| choice.title.as_str()).collect();
                Some(format!("any of these, with commas between: {}", titles.join(", ")))
            }
            _ if default.is_some() => default,
            _ => (!self.is_required).then(|| "nothing leaves it out".to_owned()),
        }
    }

    /// Reads an answer that is not empty.
    ///
    /// # Errors
    /// Why it does not fit, for the user.
    pub(super) fn parse(&self, answer: &str) -> Result<Value, String> {
        match &self.kind {
            Kind::Text { shortest, longest, format } => {
                let length = u64::try_from(answer.chars().count()).unwrap_or(u64::MAX);
                if shortest.is_some_and(|shortest| length < shortest) {
                    return Err(format!("at least {} characters", shortest.unwrap_or_default()));
                }
                if longest.is_some_and(|longest| length > longest) {
                    return Err(format!("at most {} characters", longest.unwrap_or_default()));
                }
                check_format(answer, format.as_deref())?;
                Ok(json!(answer))
            }
            Kind::Number { is_whole, least, most } => {
                let value = if *is_whole {
                    answer.parse::<i64>().ok().map(|value| json!(value))
                } else {
                    answer.parse::<f64>().ok().filter(|value| value.is_finite()).map(|value| json!(value))
                };
                let wanted = if *is_whole { "a whole number" } else { "a number" };
                let value = value.ok_or_else(|| wanted.to_owned())?;
                let amount = value.as_f64().unwrap_or_default();
                if least.is_some_and(|least| amount < least) || most.is_some_and(|most| amount > most) {
                    let bound =
                        |bound: &Option<f64>| bound.map_or_else(|| "…".to_owned(), |it| it.to_string());
                    return Err(format!("{wanted} in {} to {}", bound(least), bound(most)));
                }
                Ok(value)
            }
            Kind::Boolean => match answer {
                YES => Ok(json!(true)),
                NO => Ok(json!(false)),
                _ => Err(format!("{YES} or {NO}")),
            },
            Kind::Choice(choices) => find(choices, answer).map(|value| json!(value)),
            Kind::Choices { choices, least, most } => {
                let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
                let mut values = Vec::new();
                for value in parts.map(|part| find(choices, part)) {
                    let value = value?;
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                let count = u64::try_from(values.len()).unwrap_or(u64::MAX);
                if least.is_some_and(|least| count < least) || most.is_some_and(|most| count > most) {
                    let least = least.unwrap_or_default();
                    let most = most.map_or_else(|| "all".to_owned(), |most| most.to_string());
                    return Err(format!("{least} to {most} of them"));
                }
                Ok(json!(values))
            }
        }
    }
}

/// The value that a title or a value names.
fn find<'a>(choices: &'a [Choice], answer: &str) -> Result<&'a str, String> {
    let found = choices.iter().find(|it| it.title == answer);
    let found = found.or_else(|| choices.iter().find(|it| it.value == answer));
    found.map(|it| it.value.as_str()).ok_or_else(|| format!("\"{answer}\" is none of the choices"))
}

/// The choices of a schema in any of its forms: `enum` with or without `enumNames`, `oneOf` or `anyOf` of titled constants. `None` where
/// they cannot be read.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = schema.get("enum") {
        let titles = schema.get("enumNames").and_then(Value::as_array);
        let choice = |(at, value): (usize, &Value)| {
            let value = value.as_str()?.to_owned();
            let title = titles.and_then(|titles| titles.get(at)?.as_str()).unwrap_or(&value).to_owned();
            Some(Choice { value, title })
        };
        return values.as_array()?.iter().enumerate().map(choice).collect();
    }
    let Some(constants) = schema.get("oneOf").or_else(|| schema.get("anyOf")) else {
        return Some(Vec::new());
    };
    let choice = |constant: &Value| {
        let value = constant.get("const")?.as_str()?.to_owned();
        let title = constant.get("title").and_then(Value::as_str).unwrap_or(&value).to_owned();
        Some(Choice { value, title })
    };
    constants.as_array()?.iter().map(choice).collect()
}

/// The formats that forms have. Those that are unknown hold for everything.
fn check_format(answer: &str, format: Option<&str>) -> Result<(), String> {
    let (holds, wanted) = match format {
        Some("email") => {
            let parts = answer.split_once('@');
            (parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()), "an e-mail address")
        }
        Some("uri") => (reqwest::Url::parse(answer).is_ok(), "a URI"),
        Some("date") => (is_date(answer), "a date such as 2026-01-31"),
        Some("date-time") => (
            answer
                .split_once(['T', 't', ' '])
                .is_some_and(|(date, time)| is_date(date) && time.contains(':')),
            "a time such as 2026-01-31T12:00:00Z",
        ),
        _ => (true, ""),
    };
    if holds { Ok(()) } else { Err(wanted.to_owned()) }
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |at: usize, length: usize| {
        let part = parts.get(at).filter(|part| part.len() == length)?;
        part.parse::<u32>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    parts.len() == 3
        && number(0, 4).is_some()
        && number(1, 2).is_some_and(|month| (1..=12).contains(&month))
        && number(2, 2).is_some_and(|day| (1..=31).contains(&day))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(schema: Value) -> Field {
        Field::read("f", &schema, true).unwrap()
    }

    #[test]
    fn answers_become_values_of_their_kind() {
        let titled = json!({"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]});
        let named = json!({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]});
        let several = json!({"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}, "maxItems": 1});
        for (schema, answer, expected) in [
            (json!({"type": "string"}), "a", Ok(json!("a"))),
            (json!({"type": "string", "minLength": 2}), "a", Err("at least 2 characters")),
            (json!({"type": "string", "maxLength": 2}), "abc", Err("at most 2 characters")),
            (json!({"type": "string", "format": "email"}), "a@b", Ok(json!("a@b"))),
            (json!({"type": "string", "format": "email"}), "a", Err("an e-mail address")),
            (json!({"type": "string", "format": "date"}), "2026-02-03", Ok(json!("2026-02-03"))),
            (json!({"type": "string", "format": "date"}), "2026-13-03", Err("a date such as 2026-01-31")),
            (json!({"type": "string", "format": "uri"}), "x", Err("a URI")),
            (json!({"type": "integer"}), "3", Ok(json!(3))),
            (json!({"type": "integer"}), "3.5", Err("a whole number")),
            (json!({"type": "number", "minimum": 1, "maximum": 2}), "3.5", Err("a number in 1 to 2")),
            (json!({"type": "number"}), "inf", Err("a number")),
            (json!({"type": "boolean"}), "Yes", Ok(json!(true))),
            (json!({"type": "boolean"}), "No", Ok(json!(false))),
            (titled.clone(), "Red", Ok(json!("r"))),
            (titled, "g", Ok(json!("g"))),
            (named, "Green", Ok(json!("g"))),
            (several.clone(), "Red, Red", Ok(json!(["r"]))),
            (several.clone(), "Red, Green", Err("0 to 1 of them")),
            (several, "Blue", Err("\"Blue\" is none of the choices")),
        ] {
            let found = field(schema.clone()).parse(answer);
            assert_eq!(found, expected.map_err(str::to_owned), "{schema}");
        }
    }

    #[test]
    fn a_default_of_another_kind_does_not_count() {
        for (schema, counts) in [
            (json!({"type": "string", "default": "x"}), true),
            (json!({"type": "string", "default": 1}), false),
            (json!({"type": "integer", "default": 1}), true),
            (json!({"type": "integer", "default": 1.5}), false),
            (json!({"type": "boolean", "default": false}), true),
            (json!({"type": "string", "enum": ["a"], "default": "b"}), false),
            (json!({"type": "array", "items": {"enum": ["a"]}, "default": ["a"]}), true),
        ] {
            assert_eq!(field(schema.clone()).default.is_some(), counts, "{schema}");
        }
    }

    #[test]
    fn what_no_form_has_is_refused() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "array", "items": {"type": "string"}}),
            json!({"type": "string", "enum": [1]}),
            json!({"type": "string", "oneOf": [{"title": "no value"}]}),
            json!({}),
            json!(null),
        ] {
            assert_eq!(Field::read("f", &schema, true), None, "{schema}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_fits_its_field(answer in "\\PC{1,12}", kind in 0usize..5) {
            let schema = [
                json!({"type": "string"}),
                json!({"type": "integer"}),
                json!({"type": "number"}),
                json!({"type": "string", "enum": ["a", "b"]}),
                json!({"type": "array", "items": {"enum": ["a", "b"]}}),
            ];
            let field = field(schema[kind].clone());
            if let Ok(value) = field.parse(&answer) {
                prop_assert!(field.fits(&value));
            }
        }
    }
}
