//! Keys of a configuration file that the schema of the file does not have.

use std::{collections::BTreeMap, fmt, path::Path};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

use crate::{
    json_edit::{JsonStep, line_of},
    models::{MAX_SLIPS, slips},
};

/// The limit for keys that are reported one by one: each line is searched in the whole text.
const MOST_TOLD: usize = 40;

/// Other names that are proposed at most.
const MOST_MEANT: usize = 3;

/// The members that a file may have: what its JSON Schema, which the types make, says of members (`build.rs`). It is parsed for each look at a
/// file and not kept, since a daemon looks at few.
pub(crate) struct Keys(&'static str);

/// The members of `settings.json`.
pub(crate) static SETTINGS: Keys = Keys(include_str!(concat!(env!("OUT_DIR"), "/settings_members.json")));

/// The members of `models.json`.
pub(crate) static MODELS: Keys = Keys(include_str!(concat!(env!("OUT_DIR"), "/models_members.json")));

/// The members of a JSON Schema. The rest of it, such as descriptions, is skipped.
#[derive(Debug, Default)]
struct Schema(Members);

/// The keywords of a [`Schema`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Members {
    #[serde(rename = "$ref", borrow)]
    reference: Option<&'static str>,
    #[serde(rename = "$defs", borrow)]
    definitions: BTreeMap<&'static str, Schema>,
    #[serde(borrow)]
    properties: Option<BTreeMap<&'static str, Schema>>,
    additional_properties: Option<Box<Schema>>,
    items: Option<Box<Schema>>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    all_of: Vec<Schema>,
}

impl<'de: 'static> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectOrBool;

        impl<'de: 'static> Visitor<'de> for ObjectOrBool {
            type Value = Schema;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON Schema")
            }

            fn visit_bool<E>(self, _anything: bool) -> Result<Schema, E> {
                Ok(Schema::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Schema, A::Error> {
                Members::deserialize(MapAccessDeserializer::new(map)).map(Schema)
            }
        }

        deserializer.deserialize_any(ObjectOrBool)
    }
}

/// A member that the schema does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unknown {
    /// The way to it; its own key is the last.
    steps: Vec<Segment>,
    /// Members that are there and have almost this name, in full.
    meant: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Key(String),
    Item(usize),
}

impl Unknown {
    /// Its keys, with dots between.
    pub(crate) fn name(&self) -> String {
        dotted(&self.steps)
    }

    /// Returns whether it stands at the top of the file.
    pub(crate) fn is_top(&self) -> bool {
        self.steps.len() == 1
    }

    fn line(&self, text: &str) -> u32 {
        let steps: Vec<JsonStep<'_>> = self
            .steps
            .iter()
            .map(|step| match step {
                Segment::Key(key) => JsonStep::Key(key),
                Segment::Item(item) => JsonStep::Item(*item),
            })
            .collect();
        line_of(text, &steps)
    }
}

/// A warning for each member. One that resembles nothing is `level`.
pub(crate) fn diagnostics(
    unknown: Vec<Unknown>,
    kind: DiagnosticKind,
    level: DiagnosticLevel,
    (path, text): (&Path, &str),
) -> Vec<Diagnostic> {
    let more = unknown.len().saturating_sub(MOST_TOLD);
    let mut found: Vec<Diagnostic> = unknown
        .into_iter()
        .take(MOST_TOLD)
        .map(|it| {
            let told =
                Diagnostic::warning(kind, format!("there is no key \"{}\": it has no effect", it.name()));
            let told = told.at(path).line(it.line(text));
            match it.meant.as_slice() {
                [] => told.level(level),
                meant => {
                    let meant: Vec<String> = meant.iter().map(|name| format!("\"{name}\"")).collect();
                    told.hint(format!("did you mean {}?", meant.join(" or ")))
                }
            }
        })
        .collect();
    if more > 0 {
        found.push(Diagnostic::warning(kind, format!("{more} more keys have no effect")).at(path));
    }
    found
}

impl Keys {
    /// The members of `value`, however deep, that are none of the file's. Names at the top of the file for which `is_no_slip` says so are compared
    /// with no others.
    pub(crate) fn unknown(
        &self,
        value: &Map<String, Value>,
        is_no_slip: &dyn Fn(&str) -> bool,
    ) -> Vec<Unknown> {
        let mut found = Vec::new();
        if !value.is_empty() {
            // The text is part of the program; a test parses it.
            let root = serde_json::from_str(self.0).unwrap_or_default();
            let search = Search { root: &root, is_no_slip };
            search.look(&[&root], value.into_iter(), &mut Vec::new(), &mut found);
        }
        found
    }
}

/// One look at a file.
struct Search<'s> {
    /// The schema of the whole file, which holds what references lead to.
    root: &'s Schema,
    is_no_slip: &'s dyn Fn(&str) -> bool,
}

impl<'s> Search<'s> {
    fn look<'v>(
        &self,
        schemas: &[&'s Schema],
        members: impl Iterator<Item = (&'v String, &'v Value)>,
        at: &mut Vec<Segment>,
        found: &mut Vec<Unknown>,
    ) {
        let objects: Vec<&Members> = schemas
            .iter()
            .flat_map(|schema| self.choices(schema))
            .filter(|schema| schema.properties.is_some() || schema.additional_properties.is_some())
            .collect();
        if objects.is_empty() {
            // A value without a schema has no members to check, and a value that may be no object is reported as a wrong value.
            return;
        }
        // `$schema` is for editors; the others are what people write who know no better comments.
        for (key, value) in members.filter(|(key, _)| !key.starts_with(['$', '_', '/'])) {
            at.push(Segment::Key(key.clone()));
            let named = objects.iter().filter_map(|object| object.properties.as_ref()?.get(key.as_str()));
            let mut below: Vec<&Schema> = named.collect();
            if below.is_empty() {
                below = objects.iter().filter_map(|object| object.additional_properties.as_deref()).collect();
            }
            if below.is_empty() {
                found.push(self.slip(&objects, key, at));
            } else {
                self.look_in(&below, value, at, found);
            }
            at.pop();
        }
    }

    fn look_in(
        &self,
        schemas: &[&'s Schema],
        value: &Value,
        at: &mut Vec<Segment>,
        found: &mut Vec<Unknown>,
    ) {
        match value {
            Value::Object(members) => self.look(schemas, members.iter(), at, found),
            Value::Array(values) => {
                let items: Vec<&Schema> = schemas
                    .iter()
                    .flat_map(|schema| self.choices(schema))
                    .filter_map(|schema| schema.items.as_deref())
                    .collect();
                for (item, value) in values.iter().enumerate().take_while(|_| !items.is_empty()) {
                    at.push(Segment::Item(item));
                    self.look_in(&items, value, at, found);
                    at.pop();
                }
            }
            _ => {}
        }
    }

    /// The objects that a schema allows: behind references, each alternative by itself.
    fn choices(&self, schema: &'s Schema) -> Vec<&'s Members> {
        let Schema(members) = schema;
        let name = members.reference.and_then(|it| it.strip_prefix("#/$defs/"));
        let referred = name.and_then(|name| self.root.0.definitions.get(name));
        let lists = [&members.any_of, &members.one_of, &members.all_of].into_iter().flatten();
        let mut all: Vec<&Members> =
            referred.into_iter().chain(lists).flat_map(|it| self.choices(it)).collect();
        all.push(members);
        all
    }

    fn slip(&self, objects: &[&Members], key: &str, at: &[Segment]) -> Unknown {
        let (before, wanted) = (at.get(..at.len() - 1).unwrap_or_default(), key.to_lowercase());
        if before.is_empty() && (self.is_no_slip)(key) {
            return Unknown { steps: at.to_vec(), meant: Vec::new() };
        }
        let siblings =
            objects.iter().filter_map(|object| object.properties.as_ref()).flat_map(BTreeMap::keys);
        // The marks at both ends keep a name from being found inside of another one.
        let (marked, letters) = (format!("<{wanted}>"), wanted.chars().count());
        let whole = |name: &str| {
            let longer = name.chars().count().abs_diff(letters);
            // Most names are too long or too short, which is seen at once.
            if longer > MAX_SLIPS {
                return None;
            }
            slips(&marked, &format!("<{}>", name.to_lowercase())).filter(|slips| longer <= *slips)
        };
        let mut near: Vec<(usize, String)> = siblings
            .filter_map(|name| {
                let steps = [before, &[Segment::Key((*name).to_owned())]].concat();
                Some((whole(name)?, dotted(&steps)))
            })
            .collect();
        if near.is_empty() && before.is_empty() {
            // It may belong into one of the objects.
            let found = |(outer, last): (&str, &str)| Some((whole(last)?, format!("{outer}.{last}")));
            near = self.members().filter_map(found).collect();
        }
        near.sort();
        near.dedup();
        let fewest = near.first().map(|(slips, _)| *slips);
        let closest = near.into_iter().take_while(|(slips, _)| Some(*slips) == fewest);
        let meant = closest.take(MOST_MEANT).map(|(_, name)| name).collect();
        Unknown { steps: at.to_vec(), meant }
    }

    /// The objects at the top with each of their members.
    fn members(&self) -> impl Iterator<Item = (&'s str, &'s str)> {
        self.properties(self.root)
            .into_iter()
            .flat_map(|(outer, schema)| self.properties(schema).into_iter().map(move |(key, _)| (outer, key)))
    }

    fn properties(&self, schema: &'s Schema) -> Vec<(&'s str, &'s Schema)> {
        let maps = self.choices(schema).into_iter().filter_map(|it| it.properties.as_ref());
        maps.flatten().map(|(key, schema)| (*key, schema)).collect()
    }
}

fn dotted(steps: &[Segment]) -> String {
    let mut name = String::new();
    for step in steps {
        match step {
            Segment::Key(key) if name.is_empty() => name.push_str(key),
            Segment::Key(key) => name.extend([".", key]),
            Segment::Item(item) => name.push_str(&format!("[{item}]")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(keys: &Keys, value: Value, expected: &[(&str, &[&str])]) {
        let Value::Object(members) = value else { panic!("no object") };
        let found: Vec<(String, Vec<String>)> =
            keys.unknown(&members, &|_| false).into_iter().map(|it| (it.name(), it.meant)).collect();
        let expected: Vec<(String, Vec<String>)> = expected
            .iter()
            .map(|(name, meant)| ((*name).to_owned(), meant.iter().map(|it| (*it).to_owned()).collect()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_schemas_can_be_read() {
        for keys in [&SETTINGS, &MODELS] {
            let schema: Schema = serde_json::from_str(keys.0).unwrap();
            assert!(!Search { root: &schema, is_no_slip: &|_| false }.properties(&schema).is_empty());
        }
    }

    #[test]
    fn members_of_settings_however_deep() {
        check(
            &SETTINGS,
            json!({"defaultModel": "m", "compaction": {"enabled": true, "modelOverrides": {"a/b": {"reserveTokens": 1}}},
                "modelThinkingLevels": {"a/b": "low"}, "bash": {"_note": 1, "intercept": [{"pattern": "x"}]}, "httpIdleTimeoutMs": 5,
                "retry": {"provider": {"maxRetries": 1}}, "deadlines": {"connectMs": 1}, "$schema": "s", "//": "note"}),
            &[],
        );
        check(
            &SETTINGS,
            json!({"defualtModel": "m", "compaction": {"enabeld": true, "modelOverrides": {"a/b": {"enable": true}}},
                "bash": {"ptty": true, "intercept": [{"pattern": "x"}, {"patern": "x"}]}, "zzzzzzzz": {"a": 1},
                "reserveTokens": 5}),
            &[
                ("defualtModel", &["defaultModel"]),
                ("compaction.enabeld", &["compaction.enabled"]),
                ("compaction.modelOverrides.a/b.enable", &["compaction.modelOverrides.a/b.enabled"]),
                ("bash.ptty", &["bash.pty"]),
                ("bash.intercept[1].patern", &["bash.intercept[1].pattern"]),
                ("zzzzzzzz", &[]),
                ("reserveTokens", &["branchSummary.reserveTokens", "compaction.reserveTokens"]),
            ],
        );
        // Values of a wrong kind are told of elsewhere.
        check(
            &SETTINGS,
            json!({"compaction": true, "enabledModels": {"x": 1}, "bash": {"intercept": {"a": 1}}}),
            &[],
        );
    }

    #[test]
    fn members_of_models_files() {
        check(
            &MODELS,
            json!({"providers": {"any": {"baseUrl": "u", "api": "a", "apiKey": "k", "headers": {"x": "y"}, "oauth": "radius",
                "compat": {"any": true}, "models": [{"id": "m", "cost": {"input": 1, "tiers": [{"inputTokensAbove": 1}]},
                "samplingParams": {"any": 1}}], "modelOverrides": {"any": {"maxTokens": 5}}}}}),
            &[],
        );
        check(
            &MODELS,
            json!({"providers": {"any": {"apikey": "k", "models": [{"id": "m", "contextwindow": 1, "cost": {"inptu": 1}}]}}}),
            &[
                ("providers.any.apikey", &["providers.any.apiKey"]),
                ("providers.any.models[0].contextwindow", &["providers.any.models[0].contextWindow"]),
                ("providers.any.models[0].cost.inptu", &["providers.any.models[0].cost.input"]),
            ],
        );
    }

    #[test]
    fn of_many_the_first_are_told() {
        let text: String = (0..5000).map(|nth| format!("\"zz{nth:04}\":1,")).collect();
        let text = format!("{{{}}}", text.trim_end_matches(','));
        let Ok(Value::Object(members)) = serde_json::from_str(&text) else { panic!("no object") };
        let found = diagnostics(
            SETTINGS.unknown(&members, &|_| false),
            DiagnosticKind::Settings,
            DiagnosticLevel::Warning,
            (Path::new("/s"), &text),
        );
        assert_eq!(found.len(), MOST_TOLD + 1);
        assert_eq!(found[MOST_TOLD].message, "4960 more keys have no effect");
    }
}
