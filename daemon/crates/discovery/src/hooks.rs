//! Hooks: what is started before and after tool calls and at other events of a session. Here they are found; nothing is started.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use agentd_config::parse_json;
use agentd_protocol::capabilities::{CapabilityKind, CapabilityLevel};
use serde_json::{Map, Value};

use crate::{
    item::{Item, ItemDetail},
    scan::Scan,
    servers::json_object,
};

/// The hooks of one settings file.
const MAX_HOOKS: usize = 200;

/// A hook that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Hook<'a> {
    /// An entry of the block `hooks` in a settings file.
    Settings {
        /// The item: the file, whose it is.
        item: &'a Item,
        /// The event, such as `PreToolUse`.
        event: &'a str,
        /// The tools that it is for; `None` for all.
        matcher: Option<&'a str>,
        /// The command, a line for a shell.
        command: &'a str,
        /// The time limit in seconds, where the entry has one.
        timeout: Option<f64>,
    },
    /// An executable file in `hooks/pre/` or `hooks/post/`.
    File {
        /// The item, whose path is the executable.
        item: &'a Item,
        /// When it runs.
        phase: HookPhase,
        /// The tool; `None` for all.
        tool: Option<&'a str>,
    },
}

/// When an executable of `hooks/` runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookPhase {
    /// Before a tool call.
    Pre,
    /// After it.
    Post,
}

impl<'a> Hook<'a> {
    /// The hook that an item is; `None` for another item, and for an entry without a command.
    pub(crate) fn of(item: &'a Item) -> Option<Self> {
        match &item.detail {
            ItemDetail::SettingsHook { event, matcher, entry } => Some(Self::Settings {
                item,
                event,
                matcher: matcher.as_deref(),
                command: entry.get("command")?.as_str().filter(|command| !command.trim().is_empty())?,
                timeout: entry.get("timeout").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0),
            }),
            ItemDetail::FileHook { is_pre, tool } => Some(Self::File {
                item,
                phase: if *is_pre { HookPhase::Pre } else { HookPhase::Post },
                tool: Some(tool.as_str()).filter(|tool| *tool != "*"),
            }),
            ItemDetail::None | ItemDetail::Context(_) | ItemDetail::Server(_) => None,
        }
    }
}

/// The executables of hooks in `pre/` and `post/` of a folder.
pub(crate) fn hook_files(scan: &mut Scan<'_>, folder: &Path, level: CapabilityLevel) {
    for (phase, is_pre) in [("pre", true), ("post", false)] {
        for path in scan.files(&folder.join(phase), level, false, &|_| true) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let tool = name.split('.').next().filter(|tool| !tool.is_empty()).unwrap_or(&name).to_owned();
            // Whether it is executable is noticed by its own state.
            scan.is_file(&path);
            let key = format!("{phase}:{tool}:{name}");
            let mut item = scan.item(CapabilityKind::Hooks, &key, &path, level);
            item.detail = ItemDetail::FileHook { is_pre, tool };
            let runs = path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0);
            if !runs {
                item.no_effect = Some("the file is not executable");
            }
            scan.add(item);
        }
    }
}

/// The block `hooks` of a settings file, one item for each command.
pub(crate) fn settings_hooks(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel) {
    let Some(settings) = json_object(scan, path, level) else { return };
    add_hooks(scan, path, level, &settings);
}

/// [`settings_hooks`] of agentd's own settings, whose faults are reported where they are read as settings.
pub(crate) fn own_settings_hooks(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel) {
    if !scan.is_file(path) {
        return;
    }
    if let Some(Value::Object(settings)) = scan.text(path, level).and_then(|text| parse_json(&text).ok()) {
        add_hooks(scan, path, level, &settings);
    }
}

fn add_hooks(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel, settings: &Map<String, Value>) {
    if settings.get("disableAllHooks") == Some(&Value::Bool(true)) {
        return;
    }
    let events = match settings.get("hooks") {
        None => return,
        Some(Value::Object(events)) => events,
        Some(_) => return scan.warn(path, "\"hooks\" is no object of lists by events, and is not used"),
    };
    let mut count = 0;
    for (event, groups) in events {
        let Value::Array(groups) = groups else {
            scan.warn(path, format!("\"hooks.{event}\" is no list, and is not used"));
            continue;
        };
        for group in groups.iter().filter_map(Value::as_object) {
            let matcher = group.get("matcher").and_then(Value::as_str).filter(|it| !matches!(*it, "" | "*"));
            let entries = group.get("hooks").and_then(Value::as_array).into_iter().flatten();
            for entry in entries.filter_map(Value::as_object) {
                count += 1;
                if count > MAX_HOOKS {
                    scan.warn(
                        path,
                        format!("there are more than {MAX_HOOKS} hooks; the others are not used"),
                    );
                    return;
                }
                hook(scan, (path, level), event, matcher, entry, count);
            }
        }
    }
}

fn hook(
    scan: &mut Scan<'_>,
    (path, level): (&Path, CapabilityLevel),
    event: &str,
    matcher: Option<&str>,
    entry: &Map<String, Value>,
    number: usize,
) {
    let file = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{event}:{}:{file}:{number}", matcher.unwrap_or("*"));
    let mut item = scan.item(CapabilityKind::Hooks, &name, path, level);
    // Files of two levels have the same name.
    item.key = format!("{}:{name}", path.display());
    if entry.get("type").and_then(Value::as_str).is_some_and(|kind| kind != "command") {
        item.no_effect = Some("agentd runs hooks of the type \"command\" only");
    }
    item.detail = ItemDetail::SettingsHook {
        event: event.to_owned(),
        matcher: matcher.map(str::to_owned),
        entry: entry.clone(),
    };
    scan.add(item);
}
