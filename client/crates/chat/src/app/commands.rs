//! The commands of this program, typed behind a `/`.

use agentd_client_text::one_line;
use agentd_protocol::{
    agent_mode::AgentMode, checkpoints::RestoreStep, model::ThinkingLevel, settings::PermissionPreset,
};

use crate::{
    app::{
        chat::{Chat, Panel},
        messages::{Call, Effect, SwitchTo},
        showing::notice,
    },
    panels::{PickItem, Picker},
    transcript::NoticeLevel,
};

/// A command of this program.
#[derive(Debug)]
pub(super) struct OwnCommand {
    pub(super) name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
}

const fn own(name: &'static str, arguments: &'static str, about: &'static str) -> OwnCommand {
    OwnCommand { name, arguments, about }
}

/// The command for plan mode.
const PLAN: &str = "plan";

/// All of them.
pub(super) const OWN: &[OwnCommand] = &[
    own("help", "", "keys and commands"),
    own("model", "[PROVIDER/ID]", "choose the model"),
    own("thinking", "[LEVEL]", "choose how hard the model thinks"),
    own("new", "", "begin a new session; this one stays"),
    own("resume", "[all]", "go on with another session of this folder, or of all"),
    own("name", "NAME", "name the session"),
    own("tree", "", "go on from another place in the conversation"),
    own("fork", "", "copy the conversation up to a message into a new session"),
    own("compact", "[FOCUS]", "replace the older part of the context by a summary"),
    own("tools", "", "choose the tools that the model may call"),
    own("permissions", "[PRESET]", "choose what is asked about"),
    own(PLAN, "[off]", "plan first: nothing is changed before you have approved a plan"),
    own("diff", "[all]", "what the agent changed since the last prompt, or since the start"),
    own("undo", "", "undo what the last prompt changed in files"),
    own("redo", "", "undo the last undo"),
    own("export", "[FILE]", "write the session as an HTML page"),
    own("usage", "", "tokens and cost of the session"),
    own("history", "", "find an earlier prompt (Ctrl-R)"),
    own("quit", "", "leave; the session goes on"),
];

/// Runs a command of this program; `None` where the text is none of them.
pub(super) fn run(chat: &mut Chat, text: &str) -> Option<Vec<Effect>> {
    let line = text.strip_prefix('/')?;
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    // An extension may have a plan mode of its own, with a command of that name.
    let is_of_session = name == PLAN && chat.commands.iter().any(|command| command.name == PLAN);
    if is_of_session {
        return None;
    }
    if !OWN.iter().any(|own| own.name == name) {
        // The daemon knows what servers have that are only being connected.
        let is_of_server = name.starts_with("mcp__");
        if is_of_server || chat.commands.iter().any(|command| command.name == name) || !is_a_name(name) {
            return None;
        }
        chat.flash =
            Some(format!("There is no command /{}. /help shows those that there are.", one_line(name)));
        return Some(Vec::new());
    }
    chat.editor.take();
    chat.completions.clear();
    chat.history.add(text);
    Some(execute(chat, name, rest))
}

/// Whether it could be meant as a command. Paths, too, begin with a slash.
fn is_a_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':'))
}

fn execute(chat: &mut Chat, name: &str, rest: &str) -> Vec<Effect> {
    let given = (!rest.is_empty()).then(|| rest.to_owned());
    let call = match (name, given) {
        ("help", _) => {
            let text = help(chat);
            notice(chat, NoticeLevel::Info, text);
            chat.transcript.follow();
            return Vec::new();
        }
        ("model", Some(model)) => match model.split_once('/') {
            Some((provider, id)) => Call::SetModel { provider: provider.to_owned(), id: id.to_owned() },
            None => {
                chat.filter_models = Some(model);
                Call::ListModels
            }
        },
        ("model", None) => Call::ListModels,
        ("thinking", Some(level)) => match ThinkingLevel::from_name(&level) {
            Some(level) => Call::SetLevel(level),
            None => {
                let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
                chat.flash = Some(format!("There is no level {}: {levels}", one_line(&level)));
                return Vec::new();
            }
        },
        ("thinking", None) => Call::ListLevels,
        ("new", _) => return vec![Effect::Switch(SwitchTo::New)],
        ("resume", given) => Call::ListSessions { of_folder: given.as_deref() != Some("all") },
        ("name", Some(name)) => Call::Rename(name),
        ("name", None) => {
            chat.flash = Some("/name needs a name.".to_owned());
            return Vec::new();
        }
        ("tree" | "fork", _) => Call::Tree,
        ("compact", focus) => Call::Compact(focus),
        ("tools", _) => Call::Tools,
        ("permissions", Some(preset)) => {
            match PermissionPreset::ALL.into_iter().find(|known| known.as_str() == preset) {
                Some(preset) => Call::SetPermissions(Some(preset)),
                None => {
                    let presets = PermissionPreset::ALL.map(PermissionPreset::as_str).join(", ");
                    chat.flash = Some(format!("There is no preset {}: {presets}", one_line(&preset)));
                    return Vec::new();
                }
            }
        }
        ("permissions", None) => {
            permissions(chat);
            return Vec::new();
        }
        (PLAN, given) => match given.as_deref() {
            None | Some("on") => Call::SetMode(AgentMode::Plan),
            Some("off") => Call::SetMode(AgentMode::Default),
            Some(_) => {
                chat.flash = Some("/plan, or /plan off.".to_owned());
                return Vec::new();
            }
        },
        ("diff", given) => Call::Diff { since_start: given.as_deref() == Some("all") },
        ("undo", _) => Call::Restore(RestoreStep::Undo),
        ("redo", _) => Call::Restore(RestoreStep::Redo),
        ("export", file) => Call::Export(file),
        ("usage", _) => Call::Usage,
        ("history", _) => {
            search_history(chat);
            return Vec::new();
        }
        ("quit", _) => return vec![Effect::Quit],
        (other, _) => {
            chat.flash = Some(format!("/{other} does nothing here."));
            return Vec::new();
        }
    };
    vec![Effect::Call(Box::new(call))]
}

fn permissions(chat: &mut Chat) {
    let current = chat.permissions().map_or(PermissionPreset::Full, |state| state.preset);
    let items = PermissionPreset::ALL.into_iter().map(|preset| PickItem {
        value: preset,
        label: preset.as_str().to_owned(),
        detail: match preset {
            PermissionPreset::ReadOnly => "reads are allowed, the rest is refused",
            PermissionPreset::Ask => "reads are allowed, the rest is asked",
            PermissionPreset::Workspace => "work in the folder is allowed, the rest is asked",
            PermissionPreset::Full => "everything is allowed",
        }
        .to_owned(),
        is_dim: false,
        is_marked: preset == current,
    });
    chat.panel = Some(Panel::Permissions(Picker::new("Permissions of this session", items.collect())));
}

/// Opens the list of earlier prompts; what is typed is what is looked for.
pub(super) fn search_history(chat: &mut Chat) {
    let items = chat.history.newest_first().map(|prompt| PickItem {
        value: prompt.to_owned(),
        label: one_line(prompt),
        detail: String::new(),
        is_dim: false,
        is_marked: false,
    });
    let mut picker = Picker::new("Earlier prompts", items.collect());
    picker.set_filter(chat.editor.text());
    chat.panel = Some(Panel::History(picker));
}

fn help(chat: &Chat) -> String {
    let keys = [
        ("Enter", "send; while the model works: steer it"),
        ("Ctrl-J, Shift-Enter, Alt-Enter", "new line"),
        ("Alt-Enter while the model works", "send when it is done"),
        ("Alt-Up", "take back what waits"),
        ("Esc", "stop the work; close a list"),
        ("Ctrl-C", "clear what is typed; twice: leave"),
        ("Ctrl-D", "leave; the session goes on"),
        ("Up, Down, Ctrl-R", "earlier prompts"),
        ("Tab", "put in the chosen file or command"),
        ("PageUp, PageDown, wheel, Ctrl-Home, Ctrl-End", "scroll"),
        ("Ctrl-O", "unfold thinking, calls and summaries, or fold them"),
        ("Ctrl-T, Ctrl-P", "thinking level, model"),
        ("Ctrl-G, Ctrl-X Ctrl-E", "write in $VISUAL or $EDITOR"),
        ("Ctrl-A E B F, Alt-B F, Ctrl-W U K Y, Alt-D Y, Ctrl-_", "move, kill, yank, undo"),
        ("Ctrl-L, Ctrl-Z", "draw again, suspend"),
        ("@path, !command, !!command", "a file, a shell command, one that the model does not see"),
    ];
    let mut text = String::from("Keys\n");
    for (key, about) in keys {
        text.push_str(&format!("  {key}: {about}\n"));
    }
    text.push_str("Commands\n");
    for own in OWN {
        text.push_str(&format!("  /{} {}: {}\n", own.name, own.arguments, own.about).replace(" :", ":"));
    }
    for command in &chat.commands {
        let about = command.description.as_deref().unwrap_or_default();
        text.push_str(&format!("  /{}: {}\n", one_line(&command.name), one_line(about)));
    }
    text
}
