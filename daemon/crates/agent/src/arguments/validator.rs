//! A compiled schema: it lists the misfits of a value, and counts the work of a check beforehand, since the validator itself has no limit.

use std::{collections::HashSet, error::Error};

use boon::{
    CompileError, Compiler, ErrorKind, InstanceToken, SchemaIndex, Schemas, Type, UrlLoader, ValidationError,
};
use serde_json::{Map, Value, json};

use super::{
    bounds::{self, collect_patterns},
    keywords::Document,
};

/// The address of a schema while it is compiled. Nothing is read from there.
const HERE: &str = "schema:///tool";

/// A schema, compiled.
pub(super) struct Validator {
    schemas: Schemas,
    root: SchemaIndex,
    /// Counts the work of a check.
    work: Work,
}

/// A value in the wrong place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// The names and numbers that lead to it.
    pub(super) path: Vec<String>,
    /// The expectation.
    pub(super) message: String,
}

impl Validator {
    /// Compiles a schema. References to other documents are never followed. A regular expression outside of the linear-time dialect (with a
    /// look-ahead, say) is left out, so that it refuses nothing.
    ///
    /// # Errors
    /// The reason for people: it is not a schema, or exceeds [`bounds`].
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        let work = Work::new(bounds::check(schema)?);
        let (schemas, root) = Self::compile_within(schema)?;
        Ok(Self { schemas, root, work })
    }

    /// The work of checking `value`, in steps; `None` if it exceeds [`MAX_STEPS`].
    pub(super) fn work(&self, schema: &Value, value: &Value) -> Option<u64> {
        self.work.steps(schema, value)
    }

    fn compile_within(schema: &Value) -> Result<(Schemas, SchemaIndex), String> {
        compile(schema.clone()).or_else(|problem| {
            let mut patterns = HashSet::new();
            collect_patterns(schema, &mut patterns);
            patterns.retain(|pattern| compile(json!({ "pattern": pattern })).is_err());
            if patterns.is_empty() {
                return Err(problem);
            }
            tracing::debug!(?patterns, "patterns of a tool's argument schema are not checked");
            let mut schema = schema.clone();
            leave_out(&mut schema, &patterns);
            compile(schema)
        })
    }

    /// Everything that does not fit, in the order of the schema's keywords.
    pub(super) fn misfits(&self, value: &Value) -> Vec<Misfit> {
        let mut misfits = Vec::new();
        if let Err(error) = self.schemas.validate(value, self.root) {
            collect(&error, value, &mut misfits);
        }
        misfits
    }
}

fn compile(schema: Value) -> Result<(Schemas, SchemaIndex), String> {
    let mut compiler = Compiler::new();
    compiler.use_loader(Box::new(Nowhere));
    compiler.add_resource(HERE, schema.clone()).map_err(|error| error.to_string())?;
    let mut schemas = Schemas::new();
    match compiler.compile(HERE, &mut schemas) {
        Ok(root) => Ok((schemas, root)),
        Err(CompileError::ValidationError { src, .. }) => {
            let mut misfits = Vec::new();
            collect(&src, &schema, &mut misfits);
            let first = misfits.first().map(|misfit| {
                let place = if misfit.path.is_empty() { "root".into() } else { misfit.path.join(".") };
                format!("{place}: {}", misfit.message)
            });
            Err(first.unwrap_or_else(|| "it is no JSON Schema".to_owned()))
        }
        Err(error) => Err(error.to_string().replace(HERE, "")),
    }
}

/// Takes regular expressions out of a schema, wherever they stand.
fn leave_out(schema: &mut Value, patterns: &HashSet<&str>) {
    match schema {
        Value::Object(members) => {
            if members.get("pattern").and_then(Value::as_str).is_some_and(|own| patterns.contains(own)) {
                members.shift_remove("pattern");
            }
            if let Some(Value::Object(by_name)) = members.get_mut("patternProperties") {
                let before = by_name.len();
                by_name.retain(|name, _| !patterns.contains(name.as_str()));
                if by_name.len() < before {
                    // Properties that the pattern allowed must not be refused now.
                    members.shift_remove("additionalProperties");
                    members.shift_remove("unevaluatedProperties");
                }
            }
            members.values_mut().for_each(|member| leave_out(member, patterns));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| leave_out(item, patterns)),
        _ => {}
    }
}

/// Refuses to read other documents, since any client can declare a schema.
struct Nowhere;

impl UrlLoader for Nowhere {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("references to other documents ({url}) are not followed").into())
    }
}

/// Describes an error about a part of `value`; an error that only reports failures below it is replaced by those.
fn collect(error: &ValidationError<'_, '_>, value: &Value, out: &mut Vec<Misfit>) {
    let path = || {
        error.instance_location.tokens.iter().map(|token| match token {
            InstanceToken::Prop(name) => name.clone().into_owned(),
            InstanceToken::Item(place) => place.to_string(),
        })
    };
    let message = match &error.kind {
        ErrorKind::Required { want } => {
            out.extend(want.iter().map(|name| Misfit {
                path: path().chain([(*name).to_owned()]).collect(),
                message: "missing".to_owned(),
            }));
            return;
        }
        ErrorKind::Group
        | ErrorKind::Schema { .. }
        | ErrorKind::ContentSchema
        | ErrorKind::Reference { .. }
        | ErrorKind::AllOf
        | ErrorKind::PropertyName { .. }
            if !error.causes.is_empty() =>
        {
            error.causes.iter().for_each(|cause| collect(cause, value, out));
            return;
        }
        ErrorKind::Type { want, .. } => {
            let want: Vec<String> = want.iter().map(|wanted: Type| wanted.to_string()).collect();
            format!("expected {}, got {}", want.join(" or "), kind_of(at(value, error)))
        }
        kind => describe(kind),
    };
    out.push(Misfit { path: path().collect(), message });
}

/// The part of `value` that an error is about.
fn at<'a>(value: &'a Value, error: &ValidationError<'_, '_>) -> Option<&'a Value> {
    error.instance_location.tokens.iter().try_fold(value, |value, token| match token {
        InstanceToken::Prop(name) => value.get(name.as_ref()),
        InstanceToken::Item(place) => value.get(place),
    })
}

/// The type of a value, in the words of JSON Schema.
fn kind_of(value: Option<&Value>) -> &'static str {
    match value {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(number)) if number.is_f64() => "number",
        Some(Value::Number(_)) => "integer",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    }
}

/// Describes what is expected. The value itself follows the list of misfits.
fn describe(kind: &ErrorKind<'_, '_>) -> String {
    match kind {
        ErrorKind::AdditionalProperties { got } => format!("must not have properties {}", got.join(", ")),
        ErrorKind::Enum { want } => format!("expected one of {}", Value::from((*want).clone())),
        ErrorKind::Const { want } => format!("must be {want}"),
        ErrorKind::FalseSchema => "is not allowed".to_owned(),
        ErrorKind::Format { want, .. } => format!("is no valid {want}"),
        ErrorKind::Pattern { want, .. } => format!("does not match {want}"),
        ErrorKind::Minimum { want, .. } => format!("is less than the minimum of {want}"),
        ErrorKind::Maximum { want, .. } => format!("is greater than the maximum of {want}"),
        ErrorKind::ExclusiveMinimum { want, .. } => format!("must be greater than {want}"),
        ErrorKind::ExclusiveMaximum { want, .. } => format!("must be less than {want}"),
        ErrorKind::MultipleOf { want, .. } => format!("is no multiple of {want}"),
        ErrorKind::MinLength { want, .. } => format!("is shorter than {want} characters"),
        ErrorKind::MaxLength { want, .. } => format!("is longer than {want} characters"),
        ErrorKind::MinItems { want, .. } => format!("has fewer than {want} items"),
        ErrorKind::MaxItems { want, .. } => format!("has more than {want} items"),
        ErrorKind::UniqueItems { got: [first, second] } => {
            format!("the items {first} and {second} are equal")
        }
        ErrorKind::AnyOf | ErrorKind::OneOf(None) => "fits none of the forms that are allowed".to_owned(),
        ErrorKind::OneOf(Some(_)) => "fits more than one of the forms of which it must fit one".to_owned(),
        ErrorKind::Not => "has a form that is not allowed".to_owned(),
        other => other.to_string(),
    }
}

/// The most steps of a check. Arguments of ten thousand items take some ten thousand steps, and a fraction of a second.
pub(super) const MAX_STEPS: u64 = 250_000;

/// The deepest common nesting of schemas and values: the recursion of the validator, on a stack of 2 MiB.
const MAX_NESTING: u64 = 160;

/// Counts steps.
#[derive(Debug)]
pub(super) struct Work {
    document: Document,
}

/// More steps than may be done.
struct TooMuch;

struct Counting<'a> {
    root: &'a Value,
    document: &'a Document,
    left: u64,
}

impl Work {
    /// For schemas whose references are those of `document`.
    pub(super) fn new(document: Document) -> Self {
        Self { document }
    }

    /// The steps of a check, at least as many as schemas that the validator visits. `None` beyond [`MAX_STEPS`], where counting stops.
    pub(super) fn steps(&self, schema: &Value, value: &Value) -> Option<u64> {
        let mut counting = Counting { root: schema, document: &self.document, left: MAX_STEPS };
        counting.hold(schema, value, 0).ok().map(|()| MAX_STEPS - counting.left)
    }
}

impl<'a> Counting<'a> {
    fn hold(&mut self, schema: &'a Value, value: &Value, nesting: u64) -> Result<(), TooMuch> {
        // Misfits are reported with their path, so its length counts.
        self.take(1 + nesting / 8)?;
        let Value::Object(keywords) = schema else { return Ok(()) };
        if nesting >= MAX_NESTING {
            return Err(TooMuch);
        }
        self.take(own(keywords, value))?;
        // References were checked before the schema was compiled.
        for inner in self.document.in_place(self.root, keywords).map_err(|_| TooMuch)? {
            self.hold(inner, value, nesting + 1)?;
        }
        match value {
            Value::Object(members) => self.hold_members(keywords, members, nesting + 1),
            Value::Array(items) => self.hold_items(keywords, items, nesting + 1),
            _ => Ok(()),
        }
    }

    fn hold_members(
        &mut self,
        keywords: &'a Map<String, Value>,
        members: &Map<String, Value>,
        nesting: u64,
    ) -> Result<(), TooMuch> {
        let named = keywords.get("properties").and_then(Value::as_object);
        let by_pattern = keywords.get("patternProperties").and_then(Value::as_object);
        let others = ["additionalProperties", "unevaluatedProperties"].map(|name| keywords.get(name));
        for (name, member) in members {
            self.take(1)?;
            match named.and_then(|named| named.get(name)) {
                Some(schema) => self.hold(schema, member, nesting)?,
                None => {
                    for schema in others.iter().flatten() {
                        self.hold(schema, member, nesting)?;
                    }
                }
            }
            // Counts every pattern, whether or not it matches the name.
            for schema in by_pattern.into_iter().flat_map(Map::values) {
                self.take(1 + name.len() as u64 / 64)?;
                self.hold(schema, member, nesting)?;
            }
            if let Some(schema) = keywords.get("propertyNames") {
                self.hold(schema, &Value::String(name.clone()), nesting)?;
            }
        }
        Ok(())
    }

    fn hold_items(
        &mut self,
        keywords: &'a Map<String, Value>,
        items: &[Value],
        nesting: u64,
    ) -> Result<(), TooMuch> {
        for name in ["prefixItems", "items", "additionalItems", "unevaluatedItems", "contains"] {
            match keywords.get(name) {
                Some(Value::Array(schemas)) => {
                    for (schema, item) in schemas.iter().zip(items) {
                        self.hold(schema, item, nesting)?;
                    }
                }
                Some(schema) => {
                    for item in items {
                        self.hold(schema, item, nesting)?;
                    }
                }
                None => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, steps: u64) -> Result<(), TooMuch> {
        self.left = self.left.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }
}

/// The steps of the keywords that look at one value alone.
fn own(keywords: &Map<String, Value>, value: &Value) -> u64 {
    let length = |name: &str| match keywords.get(name) {
        Some(Value::Array(list)) => list.len() as u64,
        Some(Value::Object(members)) => members.len() as u64,
        _ => 0,
    };
    let of_lists = length("enum") + length("required") + length("dependentRequired");
    let of_value = match value {
        Value::String(text) if ["pattern", "format"].iter().any(|name| keywords.contains_key(*name)) => {
            text.len() / 64
        }
        Value::String(text) if ["minLength", "maxLength"].iter().any(|name| keywords.contains_key(*name)) => {
            text.len() / 1024
        }
        Value::Array(items) if keywords.contains_key("uniqueItems") => items.len(),
        _ => 0,
    };
    of_lists + of_value as u64
}
