//! `agentctl config explain` and `agentctl config check`.

use agentd_protocol::{
    capabilities::{CapabilityLevel, CapabilityList, GetCapabilitiesParams},
    command::NoParams,
    explain::{ExplainSettingParams, SettingExplanation, SettingLayer, SettingSource},
    resources::{Diagnostic, DiagnosticLevel},
};
use serde_json::Value;

use super::daemon_call;
use crate::{
    cli::{CheckOptions, ExplainOptions},
    exit::{Exit, Fault, conclude},
    output,
    render::one_line,
    rpc::{ExplainSetting, GetCapabilities, GetDiagnostics},
};

pub(crate) fn explain(options: &ExplainOptions) -> Exit {
    let explain = || {
        let Some(key) = options.key.clone() else { return capabilities(options) };
        let params = ExplainSettingParams { key };
        let answer = daemon_call::private_quietly_with::<ExplainSetting>(trust(options.approve), &params)?;
        if options.json { output::print_json(&answer) } else { output::print(&explanation(&answer)) }
    };
    conclude(explain())
}

/// Lists what files give sessions, shadowed items included.
fn capabilities(options: &ExplainOptions) -> Result<Exit, Fault> {
    let params = GetCapabilitiesParams { kind: options.kind, include_shadowed: true };
    let list = daemon_call::private_quietly_with::<GetCapabilities>(trust(options.approve), &params)?;
    if options.json { output::print_json(&list) } else { output::print(&listing(&list)) }
}

/// The items, kind by kind: what counts has a star.
fn listing(list: &CapabilityList) -> String {
    let mut text = String::new();
    let mut kind = None;
    let width = list.items.iter().map(|item| item.name.chars().count().min(NAME_WIDTH)).max().unwrap_or(0);
    for item in &list.items {
        if kind != Some(item.kind) {
            kind = Some(item.kind);
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{}\n", item.kind.as_str()));
        }
        let mark = if item.counts { '*' } else { ' ' };
        let level = match item.source.level {
            CapabilityLevel::User => "user",
            CapabilityLevel::Project => "project",
        };
        let reason =
            item.reason.as_ref().map(|reason| format!("  ({})", one_line(reason))).unwrap_or_default();
        text.push_str(&format!(
            "{mark} {:<width$}  {level:<7}  {}  {}{reason}\n",
            one_line(&item.name),
            one_line(&item.source.provider_name),
            one_line(&item.source.path),
        ));
    }
    if text.is_empty() {
        text.push_str("No file gives sessions anything of that kind.\n");
    }
    if !list.warnings.is_empty() {
        text.push('\n');
        text.push_str(&report(&list.warnings));
    }
    text
}

/// The longest name that a column is made wide enough for.
const NAME_WIDTH: usize = 40;

pub(crate) fn check(options: &CheckOptions) -> Exit {
    conclude(checked(options))
}

fn checked(options: &CheckOptions) -> Result<Exit, Fault> {
    let found = daemon_call::private_quietly_with::<GetDiagnostics>(trust(options.approve), &NoParams {})?;
    let printed =
        if options.json { output::print_json(&found)? } else { output::print(&report(&found.diagnostics))? };
    let fails = found.diagnostics.iter().any(|it| it.level > DiagnosticLevel::Info);
    Ok(if printed == Exit::Answered && fails { Exit::Failed } else { printed })
}

/// The flags of a session that is only looked at: packages that are not there are told, and not installed; no server of mcp.json is connected.
fn trust(approve: bool) -> &'static [&'static str] {
    if approve {
        &["--offline", "--mcp-on-demand", "--no-extensions", "--approve"]
    } else {
        &["--offline", "--mcp-on-demand", "--no-extensions"]
    }
}

/// A line for each problem, in the form of compilers.
fn report(diagnostics: &[Diagnostic]) -> String {
    if diagnostics.is_empty() {
        return "Nothing is wrong.\n".into();
    }
    let line = |it: &Diagnostic| {
        let level = match it.level {
            DiagnosticLevel::Info => "note",
            DiagnosticLevel::Warning => "warning",
            DiagnosticLevel::Error => "error",
        };
        format!("{level}: {}\n", one_line(&it.to_string()))
    };
    diagnostics.iter().map(line).collect()
}

fn explanation(answer: &SettingExplanation) -> String {
    let value = answer.value.as_ref().map_or("not set".to_owned(), Value::to_string);
    let mut text = format!("{}: {}\n", one_line(&answer.key), one_line(&value));
    match &answer.description {
        Some(description) => text.push_str(&format!("  {}\n", one_line(description))),
        None => text.push_str("  agentd has no use for this key; other programs may.\n"),
    }
    if let Some(value) = &answer.in_session {
        text.push_str(&format!(
            "  The session works with {}: it read the files before.\n",
            one_line(&value.to_string())
        ));
    }
    text.push('\n');
    answer.layers.iter().for_each(|layer| text.push_str(&line(layer)));
    text
}

fn line(layer: &SettingLayer) -> String {
    let source = match layer.source {
        SettingSource::Default => "default",
        SettingSource::User => "user",
        SettingSource::Project => "project",
        SettingSource::Environment => "environment",
        SettingSource::Flag => "flag",
    };
    let mark = if layer.counts { '*' } else { ' ' };
    let value = layer.value.as_ref().map_or("-".to_owned(), Value::to_string);
    let mut place = layer.name.clone().or_else(|| layer.path.clone()).unwrap_or_default();
    if let Some(line) = layer.line {
        place.push_str(&format!(":{line}"));
    }
    let mut text = format!("{mark} {source:<11}  {}", one_line(&value));
    for (part, before, after) in [(Some(place), "  ", ""), (layer.note.clone(), "  (", ")")] {
        if let Some(part) = part.filter(|part| !part.is_empty()) {
            text.push_str(&format!("{before}{}{after}", one_line(&part)));
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use agentd_protocol::resources::DiagnosticKind;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_layers_stand_below_the_value() {
        let answer: SettingExplanation = serde_json::from_value(json!({
            "key": "compaction.enabled", "description": "Whether.", "value": true, "source": "project", "inSession": false,
            "path": "/p/.pi/settings.json", "line": 3,
            "layers": [
                {"source": "project", "path": "/p/.pi/settings.json", "line": 3, "value": true, "counts": true},
                {"source": "user", "path": "/u/settings.json", "counts": false, "note": "nothing\u{1b}[2J"},
                {"source": "default", "value": true, "counts": false},
            ],
        }))
        .unwrap();
        let text = explanation(&answer);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(
            text.starts_with(
                "compaction.enabled: true\n  Whether.\n  The session works with false: it read the files before.\n\n\
                 * project      true  /p/.pi/settings.json:3\n  user         -  /u/settings.json  (nothing"
            ),
            "{text}"
        );
        assert!(text.ends_with("\n  default      true\n"), "{text}");
    }

    #[test]
    fn items_stand_below_their_kinds() {
        let item = |kind: &str, name: &str, more: serde_json::Value| {
            let mut item = json!({
                "kind": kind, "id": format!("x:{name}"), "name": name, "counts": true,
                "source": {"provider": "cursor", "providerName": "Cursor", "path": format!("/p/{name}"), "level": "project"},
            });
            item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            item
        };
        let list: CapabilityList = serde_json::from_value(json!({
            "items": [
                item("rules", "a", json!({})),
                item("rules", "long\u{1b}[2J", json!({"counts": false, "shadowed": true, "reason": "shadowed by /q"})),
                item("mcps", "s", json!({"counts": false, "reason": "waits for trust"})),
            ],
            "warnings": [{"level": "info", "kind": "capability", "path": "/p/c", "message": "a note"}],
        }))
        .unwrap();
        let text = listing(&list);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.starts_with("rules\n* a         project  Cursor  /p/a\n"), "{text}");
        assert!(text.contains("(shadowed by /q)\n\nmcps\n  s"), "{text}");
        assert!(text.ends_with("(waits for trust)\n\nnote: /p/c: a note\n"), "{text}");
        assert!(listing(&CapabilityList::default()).starts_with("No file"));
    }

    #[test]
    fn a_line_for_each_diagnostic() {
        assert_eq!(report(&[]), "Nothing is wrong.\n");
        let found = Diagnostic::warning(DiagnosticKind::Settings, "x\ny").at("/a").line(7).hint("z");
        assert_eq!(report(&[found.level(DiagnosticLevel::Error)]), "error: /a:7: x y (z)\n");
    }
}
