//! What the extensions of a session have registered, in the order of the extensions.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::{
    event::{EventKind, EventSet},
    flags::{self, FlagError, GivenFlag, RegisteredFlag},
    model_registrations::ModelRegistrations,
    record::{Registration, ToolDefinition},
};

/// The registrations of a session's extensions, by the numbers of the extensions in load order.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    of: Vec<ExtensionRegistrations>,
    /// Providers and virtual models, of all extensions.
    pub(crate) models: ModelRegistrations,
}

/// The registrations of one extension, each kind in the order in which they came.
#[derive(Debug, Default)]
struct ExtensionRegistrations {
    handlers: Vec<(u64, EventKind)>,
    tools: Vec<RegisteredTool>,
    commands: Vec<RegisteredCommand>,
    flags: Vec<RegisteredFlag>,
}

/// A handler, and its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HandlerRef {
    pub(crate) extension: usize,
    pub(crate) h: u64,
}

/// A tool of an extension.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RegisteredTool {
    pub(crate) definition: ToolDefinition,
    /// Whether the extension prepares arguments before they are checked.
    pub(crate) prepares: bool,
}

/// A slash command of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegisteredCommand {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// Whether it completes its arguments.
    pub(crate) completes: bool,
}

/// A command under the name by which it is called: with a number, where several extensions have one of that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedCommand {
    pub(crate) called: String,
    pub(crate) extension: usize,
    pub(crate) command: RegisteredCommand,
}

impl Registrations {
    /// None, for so many extensions.
    pub(crate) fn of(extensions: usize) -> Self {
        Self { of: (0..extensions).map(|_| ExtensionRegistrations::default()).collect(), ..Self::default() }
    }

    /// Takes over what others have registered: each extension gets the place that it has among these, and what has none is dropped.
    pub(crate) fn take_over(&mut self, before: Self, place: impl Fn(usize) -> Option<usize>) {
        let Self { of, models } = before;
        for (extension, registered) in of.into_iter().enumerate() {
            if let Some(own) = place(extension).and_then(|place| self.of.get_mut(place)) {
                *own = registered;
            }
        }
        self.models.take_over(models, place);
    }

    /// Takes or takes back a registration. Returns what is different now.
    pub(crate) fn apply(&mut self, extension: usize, what: Registration, is_taken_back: bool) -> Changed {
        let Some(of) = self.of.get_mut(extension) else { return Changed::Nothing };
        match what {
            Registration::Handler { h, event } => {
                of.handlers.retain(|(known, _)| *known != h);
                if !is_taken_back && let Some(kind) = EventKind::of(&event) {
                    of.handlers.push((h, kind));
                }
                Changed::Handlers
            }
            Registration::Tool { def, has } => {
                let prepares = has.iter().any(|has| has == "prepareArguments");
                let tool = RegisteredTool { definition: *def, prepares };
                let same = |known: &&mut RegisteredTool| known.definition.name == tool.definition.name;
                match of.tools.iter_mut().find(same) {
                    Some(known) => *known = tool,
                    None => of.tools.push(tool),
                }
                Changed::Tools
            }
            Registration::Command { name, description, completes } => {
                let command = RegisteredCommand { name, description, completes };
                match of.commands.iter_mut().find(|known| known.name == command.name) {
                    Some(known) => *known = command,
                    None => of.commands.push(command),
                }
                Changed::Commands
            }
            Registration::Flag { name, value_type } => {
                of.flags.retain(|known| known.name != name);
                of.flags.push(RegisteredFlag { name, is_switch: value_type == "boolean" });
                Changed::Nothing
            }
            Registration::Provider { name, config, native, provider } => {
                self.models.provider(
                    extension,
                    name,
                    (native, if native { provider } else { config }),
                    is_taken_back,
                );
                Changed::Models
            }
            Registration::VirtualModel { model, cb, provider, id } => {
                if is_taken_back {
                    self.models.remove_virtual(&provider, &id);
                } else {
                    self.models.add_virtual(extension, model, cb);
                }
                Changed::Models
            }
            Registration::Other => Changed::Nothing,
        }
    }

    /// Drops everything of an extension.
    pub(crate) fn discard(&mut self, extension: usize) {
        if let Some(of) = self.of.get_mut(extension) {
            *of = ExtensionRegistrations::default();
        }
        self.models.discard(extension);
    }

    /// The events that anybody listens to.
    pub(crate) fn events(&self) -> EventSet {
        let mut events = EventSet::default();
        self.of.iter().flat_map(|of| &of.handlers).for_each(|(_, kind)| events.insert(*kind));
        events
    }

    /// The handlers of an event, in the order in which they are called.
    pub(crate) fn handlers(&self, kind: EventKind) -> Vec<HandlerRef> {
        let of = self.of.iter().enumerate();
        let handlers = of.flat_map(|(extension, of)| {
            let of = of.handlers.iter().filter(move |(_, of)| *of == kind);
            of.map(move |(h, _)| HandlerRef { extension, h: *h })
        });
        handlers.collect()
    }

    /// The tools: of several with one name the first extension's.
    pub(crate) fn tools(&self) -> Vec<(usize, RegisteredTool)> {
        let mut found: Vec<(usize, RegisteredTool)> = Vec::new();
        for (extension, of) in self.of.iter().enumerate() {
            for tool in &of.tools {
                if !found.iter().any(|(_, known)| known.definition.name == tool.definition.name) {
                    found.push((extension, tool.clone()));
                }
            }
        }
        found
    }

    /// The commands by the names under which they are called. Where several extensions have one of a name, all are numbered.
    pub(crate) fn commands(&self) -> Vec<NamedCommand> {
        let of =
            || self.of.iter().enumerate().flat_map(|(at, of)| of.commands.iter().map(move |it| (at, it)));
        let mut counts: HashMap<&str, usize> = HashMap::new();
        of().for_each(|(_, command)| *counts.entry(&command.name).or_default() += 1);
        let mut taken: Vec<String> =
            of().map(|(_, it)| it.name.clone()).filter(|name| counts[name.as_str()] == 1).collect();
        let mut found = Vec::new();
        for (extension, command) in of() {
            let called = if counts[command.name.as_str()] == 1 {
                command.name.clone()
            } else {
                let numbered = (1..).map(|number| format!("{}:{number}", command.name));
                let free = numbered.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
                taken.push(free.clone());
                free
            };
            found.push(NamedCommand { called, extension, command: command.clone() });
        }
        found
    }

    /// The values of flags that the command line gave.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub(crate) fn flag_values(&self, given: &[GivenFlag]) -> Result<Map<String, Value>, FlagError> {
        flags::values(given, |name| self.of.iter().flat_map(|of| &of.flags).find(|flag| flag.name == name))
    }

    /// The names of what each extension has registered.
    pub(crate) fn overview(&self) -> Vec<RegisteredNames> {
        let names = |of: &ExtensionRegistrations| {
            let mut events: Vec<String> = Vec::new();
            for (_, kind) in &of.handlers {
                if !events.iter().any(|known| known == kind.name()) {
                    events.push(kind.name().to_owned());
                }
            }
            RegisteredNames {
                tools: of.tools.iter().map(|tool| tool.definition.name.clone()).collect(),
                commands: of.commands.iter().map(|command| command.name.clone()).collect(),
                flags: of.flags.iter().map(|flag| flag.name.clone()).collect(),
                events,
            }
        };
        self.of.iter().map(names).collect()
    }

    /// The first tool or flag that two extensions have: the later extension, the earlier one, and what it is, as pi words it.
    pub(crate) fn conflict(&self) -> Option<(usize, usize, String)> {
        for (later, of) in self.of.iter().enumerate() {
            for (earlier, before) in self.of[..later].iter().enumerate() {
                let tool = of.tools.iter().find(|tool| {
                    before.tools.iter().any(|other| other.definition.name == tool.definition.name)
                });
                if let Some(tool) = tool {
                    return Some((later, earlier, format!("Tool \"{}\"", tool.definition.name)));
                }
                let flag =
                    of.flags.iter().find(|flag| before.flags.iter().any(|other| other.name == flag.name));
                if let Some(flag) = flag {
                    return Some((later, earlier, format!("Flag \"--{}\"", flag.name)));
                }
            }
        }
        None
    }
}

/// The names of what an extension has registered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RegisteredNames {
    pub(crate) tools: Vec<String>,
    pub(crate) commands: Vec<String>,
    pub(crate) flags: Vec<String>,
    pub(crate) events: Vec<String>,
}

/// What a registration has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    Nothing,
    Handlers,
    Tools,
    Commands,
    Models,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn registered(registrations: &mut Registrations, extension: usize, what: Value) -> Changed {
        registrations.apply(extension, serde_json::from_value(what).unwrap(), false)
    }

    #[test]
    fn handlers_are_called_by_extension_then_by_registration() {
        let mut registrations = Registrations::of(2);
        for (extension, h, event) in [
            (1, 1, "input"),
            (0, 2, "input"),
            (0, 3, "tool_call"),
            (0, 4, "input"),
            (1, 5, "session_directory"),
        ] {
            registered(&mut registrations, extension, json!({"kind": "handler", "h": h, "event": event}));
        }
        let order: Vec<u64> = registrations.handlers(EventKind::Input).iter().map(|it| it.h).collect();
        assert_eq!(order, [2, 4, 1]);
        assert!(registrations.events().contains(EventKind::ToolCall));
        let gone = Registration::Handler { h: 3, event: String::new() };
        registrations.apply(0, gone, true);
        assert!(!registrations.events().contains(EventKind::ToolCall));
        registrations.discard(0);
        assert_eq!(registrations.handlers(EventKind::Input), [HandlerRef { extension: 1, h: 1 }]);
    }

    #[test]
    fn what_was_registered_before_gets_the_place_of_its_extension() {
        let (mut before, mut registrations) = (Registrations::of(2), Registrations::of(3));
        for (extension, h) in [(0, 1), (1, 2)] {
            registered(&mut before, extension, json!({"kind": "handler", "h": h, "event": "input"}));
            let provider = json!({"kind": "provider", "name": format!("p{extension}"), "config": {}});
            registered(&mut before, extension, provider);
        }
        registrations.take_over(before, |extension| (extension == 1).then_some(2));
        assert_eq!(registrations.handlers(EventKind::Input), [HandlerRef { extension: 2, h: 2 }]);
        let providers: Vec<_> =
            registrations.models.providers.iter().map(|it| (it.extension, it.id.as_str())).collect();
        assert_eq!(providers, [(2, "p1")]);
    }

    #[test]
    fn commands_of_one_name_are_all_numbered() {
        let mut registrations = Registrations::of(3);
        for (extension, name) in [(0, "a"), (0, "b"), (1, "a"), (2, "a:1"), (2, "c")] {
            registered(&mut registrations, extension, json!({"kind": "command", "name": name}));
        }
        let names: Vec<String> = registrations.commands().into_iter().map(|it| it.called).collect();
        assert_eq!(names, ["a:2", "b", "a:3", "a:1", "c"]);
    }

    #[test]
    fn the_same_name_again_replaces() {
        let mut registrations = Registrations::of(1);
        for text in ["first", "second"] {
            let what = json!({"kind": "tool", "def": {"name": "t", "description": text}});
            assert_eq!(registered(&mut registrations, 0, what), Changed::Tools);
        }
        let tools = registrations.tools();
        assert_eq!(tools.len(), 1);
        assert_eq!(tools[0].1.definition.description, "second");
    }

    #[test]
    fn tools_and_flags_of_two_extensions_conflict() {
        let mut registrations = Registrations::of(2);
        registered(&mut registrations, 0, json!({"kind": "flag", "name": "plan", "valueType": "boolean"}));
        registered(&mut registrations, 1, json!({"kind": "command", "name": "plan"}));
        assert_eq!(registrations.conflict(), None);
        registered(&mut registrations, 1, json!({"kind": "flag", "name": "plan", "valueType": "boolean"}));
        assert_eq!(registrations.conflict(), Some((1, 0, "Flag \"--plan\"".to_owned())));
    }
}
