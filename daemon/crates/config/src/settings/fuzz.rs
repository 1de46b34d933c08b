//! The law of `settings.json`; see `fuzz.rs` of the crate.

use std::path::Path;

use agentd_protocol::{
    resources::{Diagnostic, DiagnosticLevel},
    settings::Settings,
};
use serde_json::Value;

use super::{http_idle_timeout, layer::Layer, merge::merge};
use crate::fuzz::{check_told, document};

/// Problems that are told of one file at most: each is looked for in the whole text.
const MOST_TOLD: usize = 60;

/// The usable part of any file is used, and faults are reported with their lines. The usable part merges with another file's,
/// and yields no diagnostics when it is read again.
pub(crate) fn settings(input: &[u8]) {
    let path = Path::new("x.json");
    let layer = Layer::of(path, document(input));
    check_told(&layer.diagnostics, input);
    assert!(layer.diagnostics.len() <= MOST_TOLD, "{} problems are told", layer.diagnostics.len());
    let values = Value::Object(layer.values.clone());
    match serde_json::from_value::<Settings>(values.clone()) {
        Ok(settings) => drop(http_idle_timeout(&settings)),
        Err(error) => panic!("{error}: {values}"),
    }
    let below = serde_json::json!({"compaction": {"enabled": true}, "retry": {"provider": {"timeoutMs": 5}}, "skills": ["a"]});
    let Value::Object(below) = below else { return };
    let merged = Value::Object(merge(below, layer.values.clone()));
    if let Err(error) = serde_json::from_value::<Settings>(merged.clone()) {
        panic!("{error}: {merged}");
    }
    let text = values.to_string();
    let again = Layer::of(path, document(text.as_bytes()));
    // A name of older versions counts once what stood in its way is gone.
    if !["queueMode", "maxDelayMs", "customDirectories", "enableSkillCommands"]
        .iter()
        .any(|old| text.contains(old))
    {
        assert_eq!(again.values, layer.values, "{text}");
    }
    // An unread key is reported each time: with a warning, or with a note where pi knows it.
    let is_fault =
        |told: &&Diagnostic| told.level > DiagnosticLevel::Info && !told.message.contains("has no effect");
    let faults = again.diagnostics.iter().filter(is_fault).count();
    assert_eq!(faults, 0, "{:?} of {text}", again.diagnostics);
}
