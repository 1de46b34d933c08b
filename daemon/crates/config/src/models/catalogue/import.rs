//! Another catalogue in the place of the built-in one: read, checked whole, packed, stored.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use agentd_protocol::{
    model::Model,
    model_list::{CatalogueUpdate, DroppedHeader, NotSpoken},
    number,
};
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use super::{
    Catalogue, packing,
    stored::{self, CatalogueError, CatalogueFault, Index, Row},
};
use crate::{
    AgentDir,
    json_edit::{JsonStep, line_of},
    json_file::without_value,
    models::{DEMO_PROVIDER, ModelRegistry},
};

/// A larger text is no catalogue: 64 MiB.
pub const MAX_CATALOGUE_BYTES: u64 = 64 << 20;

/// Good and quick: the models are unpacked as fast as those of the built-in catalogue.
const LEVEL: u8 = 6;

/// Faults that are told at most.
const MOST_FAULTS: usize = 10;

/// The members of a catalogue. Others do not count.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CatalogueText<'a> {
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    date: Option<String>,
    /// In order of preference: the map keeps the order of the text.
    defaults: Map<String, Value>,
    #[serde(default)]
    names: HashMap<String, String>,
    #[serde(borrow)]
    models: Vec<&'a RawValue>,
    #[serde(default)]
    other_models: Vec<serde::de::IgnoredAny>,
}

/// A provider, and its models as they will be stored.
#[derive(Default)]
struct Gathered {
    ids: Vec<String>,
    known: HashSet<String>,
    lines: String,
}

/// Checks a catalogue (`docs/models.md` describes the format), and stores it in the agent directory, where every session that
/// is opened from now on finds it. `speaks` tells whether this build speaks a wire API. Blocks.
///
/// # Errors
/// [`CatalogueError`]; what was stored before still counts.
pub fn update_catalogue(
    agent_dir: &AgentDir,
    text: &str,
    speaks: &dyn Fn(&str) -> bool,
) -> Result<CatalogueUpdate, CatalogueError> {
    let before = ModelRegistry::of_agent_dir(agent_dir).into_catalogue();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let imported = import(text)?;
    let after = stored::parse(&imported.bytes)
        .map_err(|what| one_fault(text, &[], String::new(), format!("the catalogue {what}")))?;
    let mut update = compare(&before, &after);
    for provider in after.providers() {
        for (api, count) in provider.apis.iter().filter(|(api, _)| !speaks(api)) {
            match update.not_spoken.iter_mut().find(|known| known.api == *api) {
                Some(known) => known.models += *count as u64,
                None => update.not_spoken.push(NotSpoken { api: api.to_string(), models: *count as u64 }),
            }
        }
    }
    update.dropped_headers = imported.dropped_headers;
    update.other_models = imported.other_models;
    stored::store(agent_dir, &imported.bytes)?;
    Ok(update)
}

/// Removes the catalogue that an update stored; the built-in one counts again. Blocks.
///
/// # Errors
/// [`CatalogueError::Io`].
pub fn reset_catalogue(agent_dir: &AgentDir) -> Result<CatalogueUpdate, CatalogueError> {
    let before = ModelRegistry::of_agent_dir(agent_dir).into_catalogue();
    stored::remove(agent_dir)?;
    Ok(compare(&before, &Catalogue::builtin()))
}

/// The changes from one catalogue to the other.
fn compare(before: &Catalogue, after: &Catalogue) -> CatalogueUpdate {
    let ids = |of: &Catalogue| of.providers().iter().map(|provider| provider.id.to_string()).collect();
    let (old, new): (Vec<String>, Vec<String>) = (ids(before), ids(after));
    let only = |these: &[String], those: &[String]| {
        these.iter().filter(|id| !those.contains(id)).cloned().collect::<Vec<_>>()
    };
    let models = |of: &Catalogue| -> HashMap<(String, String), Arc<Model>> {
        let all = (0..of.providers().len()).flat_map(|place| of.models(place).to_vec());
        all.map(|model| ((model.provider.clone(), model.id.clone()), model)).collect()
    };
    let (old_models, new_models) = (models(before), models(after));
    let added = new_models.keys().filter(|key| !old_models.contains_key(*key)).count();
    let kept = new_models.iter().filter_map(|(key, model)| Some((model, old_models.get(key)?)));
    CatalogueUpdate {
        catalogue: after.info().clone(),
        providers: new.len() as u64,
        models: new_models.len() as u64,
        added_providers: only(&new, &old),
        removed_providers: only(&old, &new),
        added_models: added as u64,
        removed_models: old_models.keys().filter(|key| !new_models.contains_key(*key)).count() as u64,
        changed_models: kept.filter(|(new, old)| new != old).count() as u64,
        dropped_headers: Vec::new(),
        not_spoken: Vec::new(),
        other_models: 0,
    }
}

struct Imported {
    /// The bytes of [`stored::written`].
    bytes: Vec<u8>,
    dropped_headers: Vec<DroppedHeader>,
    other_models: u64,
}

fn one_fault(text: &str, steps: &[JsonStep<'_>], place: String, what: impl Into<String>) -> CatalogueError {
    let fault = CatalogueFault { line: line_of(text, steps), place, what: what.into() };
    CatalogueError::Invalid { faults: vec![fault], more: 0 }
}

/// The bytes that a text would be stored as.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn checked(text: &str) -> Result<Vec<u8>, CatalogueError> {
    import(text).map(|imported| imported.bytes)
}

fn import(text: &str) -> Result<Imported, CatalogueError> {
    let document = read(text)?;
    let mut faults = Faults { text, found: Vec::new(), more: 0 };
    let mut gathered: BTreeMap<String, Gathered> = BTreeMap::new();
    let mut dropped: BTreeMap<String, u64> = BTreeMap::new();
    if document.models.is_empty() {
        faults.add(&[JsonStep::Key("models")], "models".into(), "there is no model in it");
    }
    for (place, raw) in document.models.iter().enumerate() {
        let Some((model, line)) = one_model(raw, place, &mut faults, &mut dropped) else { continue };
        let provider = gathered.entry(model.provider.clone()).or_default();
        if !provider.known.insert(model.id.clone()) {
            let what = format!("{}/{} is there twice", model.provider, model.id);
            faults.add(
                &[JsonStep::Key("models"), JsonStep::Item(place), JsonStep::Key("id")],
                format!("models[{place}].id"),
                what,
            );
            continue;
        }
        provider.ids.push(model.id);
        provider.lines.push_str(&line);
        provider.lines.push('\n');
    }
    // With faulty models left out, what follows would be said to be wrong without being so.
    if faults.found.is_empty() {
        check_defaults(&document.defaults, &gathered, &mut faults);
    }
    faults.done()?;

    let builtin = Catalogue::builtin();
    let (mut rows, mut bytes) = (Vec::new(), Vec::new());
    for (id, provider) in &gathered {
        let default = document.defaults.get(id).and_then(Value::as_str).unwrap_or(&provider.ids[0]);
        let name = document.names.get(id).cloned();
        let known = || builtin.place_of(id).map(|place| builtin.providers()[place].name.to_string());
        let about = packing::pack(id, default, &provider.lines, LEVEL, &mut bytes)
            .map_err(|what| one_fault(text, &[], String::new(), what))?;
        rows.push(Row {
            id: id.clone(),
            name: name.or_else(known).unwrap_or_else(|| id.clone()),
            default: default.to_owned(),
            apis: about.apis,
            ids: about.ids,
            names_levels: about.names_levels,
            start: about.packed.start,
            end: about.packed.end,
            unpacked: about.unpacked,
        });
    }
    let place = |id: &String| rows.iter().position(|row| row.id == *id);
    let mut preferred: Vec<usize> = document.defaults.keys().filter_map(place).collect();
    let others: Vec<usize> = (0..rows.len()).filter(|place| !preferred.contains(place)).collect();
    preferred.extend(others);
    let now = jiff::Timestamp::now();
    let updated_at = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    let index =
        Index { source: document.source, date: document.date, updated_at, providers: rows, preferred };
    let bytes = stored::written(&index, &bytes)
        .map_err(|error| one_fault(text, &[], String::new(), error.to_string()))?;
    let dropped_headers = dropped.into_iter().map(|(name, models)| DroppedHeader { name, models });
    Ok(Imported {
        bytes,
        dropped_headers: dropped_headers.collect(),
        other_models: document.other_models.len() as u64,
    })
}

/// The text as JSON of the right shape.
fn read(text: &str) -> Result<CatalogueText<'_>, CatalogueError> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let document: CatalogueText<'_> = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let place = error.path().to_string();
        // When the text is no JSON, the path ends in an unknown step.
        let place = place.trim_end_matches(['.', '?']).to_owned();
        at_line(place, error.inner())
    })?;
    reader.end().map_err(|error| at_line(String::new(), &error))?;
    Ok(document)
}

/// A fault where serde met it.
fn at_line(place: String, error: &serde_json::Error) -> CatalogueError {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let what = without_value(message.strip_suffix(&position).unwrap_or(&message));
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    CatalogueError::Invalid { faults: vec![CatalogueFault { line, place, what }], more: 0 }
}

/// The faults of a text.
struct Faults<'a> {
    text: &'a str,
    found: Vec<CatalogueFault>,
    more: usize,
}

impl Faults<'_> {
    fn add(&mut self, steps: &[JsonStep<'_>], place: String, what: impl Into<String>) {
        if self.found.len() < MOST_FAULTS {
            self.found.push(CatalogueFault { line: line_of(self.text, steps), place, what: what.into() });
        } else {
            self.more += 1;
        }
    }

    fn done(self) -> Result<(), CatalogueError> {
        match self.found.is_empty() {
            true => Ok(()),
            false => Err(CatalogueError::Invalid { faults: self.found, more: self.more }),
        }
    }
}

/// A model, and the line that is stored of it; `None` where something is wrong with it.
fn one_model(
    raw: &RawValue,
    place: usize,
    faults: &mut Faults<'_>,
    dropped: &mut BTreeMap<String, u64>,
) -> Option<(Model, String)> {
    let mut wrong = |member: &str, what: String| {
        let mut steps = vec![JsonStep::Key("models"), JsonStep::Item(place)];
        steps.extend(member.split('.').filter(|key| !key.is_empty()).map(JsonStep::Key));
        let dot = if member.is_empty() { "" } else { "." };
        faults.add(&steps, format!("models[{place}]{dot}{member}"), what);
    };
    // Twice, since the numbers of the text are to stay as they are, and a model knows only its own members.
    let mut value: Map<String, Value> = match serde_json::from_str(raw.get()) {
        Ok(value) => value,
        Err(_) => {
            wrong("", "expected an object".into());
            return None;
        }
    };
    number::normalize_map(&mut value);
    // Clients are told of models with this member beside.
    value.remove("hasKey");
    clean_headers(&mut value, dropped);
    let line = serde_json::to_string(&value).ok()?;
    let mut reader = serde_json::Deserializer::from_str(&line);
    let model: Model = match serde_path_to_error::deserialize(&mut reader) {
        Ok(model) => model,
        Err(error) => {
            let path = error.path().to_string();
            let message = error.inner().to_string();
            let message = message.split_once(" at line ").map_or(message.as_str(), |(before, _)| before);
            wrong(if path == "." { "" } else { &path }, without_value(message));
            return None;
        }
    };
    let problems = problems(&model, &value);
    for (member, what) in &problems {
        wrong(member, what.clone());
    }
    problems.is_empty().then_some((model, line))
}

/// The faults of a model beyond the shape of its JSON.
fn problems(model: &Model, value: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let mut problems = Vec::new();
    for (member, text) in
        [("id", &model.id), ("name", &model.name), ("api", &model.api), ("provider", &model.provider)]
    {
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            problems.push((member, "expected a text".to_owned()));
        }
    }
    if model.provider.contains(['/', ' ']) || [DEMO_PROVIDER, "unknown"].contains(&model.provider.as_str()) {
        problems.push(("provider", format!("\"{}\" cannot be the name of a provider", model.provider)));
    }
    if !value.get("baseUrl").is_some_and(Value::is_string) {
        problems.push(("baseUrl", "expected the address that requests go to".to_owned()));
    }
    if model.context_window == 0 {
        problems.push(("contextWindow", "expected a number of tokens above 0".to_owned()));
    }
    if value.get("maxTokens").is_some_and(|most| !most.is_number()) {
        problems.push(("maxTokens", "expected a number of tokens".to_owned()));
    }
    if model.input.is_empty() {
        problems.push(("input", "expected a list such as [\"text\"]".to_owned()));
    }
    for (name, value) in model.headers.iter().flatten() {
        // `models.json` may name variables and commands, and secrets; what comes from elsewhere may not.
        let what = match value.as_str() {
            None => "expected a text",
            Some(text) if text.contains('$') || text.starts_with('!') => {
                "a catalogue may not name variables or commands; `models.json` may"
            }
            Some(text) if text.chars().any(char::is_control) => "expected a text of one line",
            Some(_) if is_secret(name) => {
                "a catalogue may not hold credentials: `agentctl login` stores them"
            }
            Some(_) => continue,
        };
        problems.push(("headers", format!("{name}: {what}")));
    }
    problems
}

/// Takes the headers out that say that another product is the sender.
fn clean_headers(model: &mut Map<String, Value>, dropped: &mut BTreeMap<String, u64>) {
    let Some(Value::Object(headers)) = model.get_mut("headers") else { return };
    headers.retain(|name, _| {
        let foreign = presents_another(name);
        if foreign {
            *dropped.entry(name.clone()).or_default() += 1;
        }
        !foreign
    });
    if headers.is_empty() {
        model.remove("headers");
    }
}

/// Returns whether a header says which program sends the request.
fn presents_another(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    let whole = [
        "user-agent",
        "x-user-agent",
        "copilot-integration-id",
        "originator",
        "x-app",
        "http-referer",
        "referer",
        "x-title",
        "x-client-name",
        "x-client-version",
        "x-goog-api-client",
    ];
    whole.contains(&header.as_str())
        || ["editor-", "x-editor-", "x-stainless-"].iter().any(|start| header.starts_with(start))
}

fn is_secret(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"]
        .contains(&header.as_str())
}

fn check_defaults(
    defaults: &Map<String, Value>,
    gathered: &BTreeMap<String, Gathered>,
    faults: &mut Faults<'_>,
) {
    for (provider, default) in defaults {
        let steps = [JsonStep::Key("defaults"), JsonStep::Key(provider)];
        let what = match (gathered.get(provider), default.as_str()) {
            (None, _) => "no model is of this provider".to_owned(),
            (_, None) => "expected the id of a model".to_owned(),
            (Some(known), Some(id)) if known.known.contains(id) => continue,
            (Some(_), Some(id)) => format!("the provider has no model \"{id}\""),
        };
        faults.add(&steps, format!("defaults.{provider}"), what);
    }
}

#[cfg(test)]
mod tests;
