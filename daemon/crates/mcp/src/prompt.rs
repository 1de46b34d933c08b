//! Prompts of servers: what a list says of one, the arguments that a user types, and the message that comes of it. Pure, but for
//! [`message_of`].

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use agentd_config::resources::split_arguments;
use agentd_protocol::{
    message::{ContentBlock, ImageContent},
    text_bounds,
};
use serde_json::{Map, Value, json};

use crate::result::{Spill, read_block};

/// The longest description that is passed on, in bytes.
const MAX_DESCRIPTION: usize = 1000;

/// Arguments of a prompt: one with more is left out of the list.
const MAX_ARGUMENTS: usize = 50;

/// A prompt, as a server lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptDefinition {
    /// The server's own name for it.
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) arguments: Vec<PromptArgument>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptArgument {
    pub(crate) name: String,
    pub(crate) is_required: bool,
}

impl PromptDefinition {
    /// Reads an item of `prompts/list`.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn read(item: &Value) -> Result<Self, String> {
        let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text(item, "name").filter(|name| !name.is_empty()).ok_or("a prompt has no name")?;
        let description = text(item, "description").or_else(|| text(item, "title"));
        let description = description.map(|text| text_bounds::head(text.trim(), MAX_DESCRIPTION).to_owned());
        let mut arguments = Vec::new();
        for argument in item.get("arguments").and_then(Value::as_array).into_iter().flatten() {
            let argument_name = text(argument, "name").filter(|name| !name.is_empty());
            let argument_name =
                argument_name.ok_or_else(|| format!("an argument of the prompt {name} has no name"))?;
            let is_required = argument.get("required") == Some(&Value::Bool(true));
            arguments.push(PromptArgument { name: argument_name, is_required });
        }
        if arguments.len() > MAX_ARGUMENTS {
            return Err(format!("the prompt {name} has more than {MAX_ARGUMENTS} arguments"));
        }
        Ok(Self { name, description: description.filter(|text| !text.is_empty()), arguments })
    }

    /// The prompt in MCP's own form: what [`Self::read`] reads.
    pub(crate) fn to_json(&self) -> Value {
        let argument = |PromptArgument { name, is_required }: &PromptArgument| json!({"name": name, "required": is_required});
        let arguments: Vec<Value> = self.arguments.iter().map(argument).collect();
        json!({"name": self.name, "description": self.description, "arguments": arguments})
    }

    /// The arguments, to be shown to the user: `<required> [optional]`.
    pub(crate) fn hint(&self) -> Option<String> {
        let shown = self.arguments.iter().map(|PromptArgument { name, is_required }| match is_required {
            true => format!("<{name}>"),
            false => format!("[{name}]"),
        });
        Some(shown.collect::<Vec<_>>().join(" ")).filter(|hint| !hint.is_empty())
    }

    /// The arguments in what was typed: `name=value`, and others by their position. Further words belong to the last argument.
    ///
    /// # Errors
    /// What is missing or too much. The text quotes no value.
    pub(crate) fn arguments_of(&self, typed: &str) -> Result<Map<String, Value>, String> {
        let mut given = Map::new();
        let mut others = Vec::new();
        for word in split_arguments(typed) {
            let named =
                word.split_once('=').filter(|(name, _)| self.arguments.iter().any(|it| it.name == *name));
            match named {
                Some((name, value)) => drop(given.insert(name.to_owned(), Value::from(value))),
                None => others.push(word),
            }
        }
        let free: Vec<&str> = self
            .arguments
            .iter()
            .map(|it| it.name.as_str())
            .filter(|name| !given.contains_key(*name))
            .collect();
        if free.is_empty() && !others.is_empty() {
            return Err(match self.hint() {
                Some(hint) => format!("it has more arguments than it takes: {hint}"),
                None => "it takes no arguments".to_owned(),
            });
        }
        let mut others = others.into_iter();
        for (position, name) in free.iter().enumerate() {
            let value = if position + 1 == free.len() {
                let rest: Vec<String> = others.by_ref().collect();
                (!rest.is_empty()).then(|| rest.join(" "))
            } else {
                others.next()
            };
            if let Some(value) = value {
                given.insert((*name).to_owned(), Value::from(value));
            }
        }
        let missing = self.arguments.iter().find(|it| it.is_required && !given.contains_key(&it.name));
        match missing {
            Some(PromptArgument { name, .. }) => {
                let hint = self.hint().unwrap_or_default();
                Err(format!(
                    "its argument \"{name}\" is missing; it takes {hint}, by position or as {name}=…"
                ))
            }
            None => Ok(given),
        }
    }
}

/// The prompts that a server had when they were last listed.
#[derive(Default)]
pub(crate) struct PromptList(Mutex<Arc<[PromptDefinition]>>);

impl PromptList {
    /// The list.
    pub(crate) fn get(&self) -> Arc<[PromptDefinition]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes another list. Returns whether it differs.
    pub(crate) fn set(&self, prompts: Vec<PromptDefinition>) -> bool {
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = **list != *prompts;
        *list = prompts.into();
        is_new
    }
}

/// A prompt of a server, as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptCommand {
    /// Its name, without the slash.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// Its arguments, to be shown to the user.
    pub argument_hint: Option<String>,
    /// The file of the server's entry.
    pub path: PathBuf,
}

/// Why a prompt did not become a message. The texts are for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no such prompt.
    #[error("/{name} cannot be used: {problem}")]
    Unknown {
        /// The name after the slash.
        name: String,
        /// What there is instead.
        problem: String,
    },
    /// Its arguments do not fit.
    #[error("/{name} cannot be used: {problem}")]
    Arguments {
        /// The name after the slash.
        name: String,
        /// What is wrong with them.
        problem: String,
    },
    /// The server is not there, or answered with an error.
    #[error("/{name} could not be had from its MCP server: {problem}")]
    Failed {
        /// The name after the slash.
        name: String,
        /// What the server said.
        problem: String,
    },
    /// It was given up.
    #[error("/{name} was given up")]
    Cancelled {
        /// The name after the slash.
        name: String,
    },
}

/// A message of the user that a prompt became.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PromptText {
    /// Its text.
    pub text: String,
    /// Its images.
    pub images: Vec<ImageContent>,
}

/// The message that the answer to `prompts/get` stands for. Where the server also speaks as the assistant, the text says who speaks.
/// Keeps content that is no text in files; blocks.
///
/// # Errors
/// The answer holds no message.
pub(crate) fn message_of(answer: &Value, spill: &Spill<'_>) -> Result<PromptText, String> {
    let messages = answer.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_of_assistant = |message: &Value| message.get("role").and_then(Value::as_str) == Some("assistant");
    let names_speakers = messages.iter().any(is_of_assistant);
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for message in messages {
        let blocks = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.iter().collect(),
            Some(block) => vec![block],
            None => Vec::new(),
        };
        for block in blocks {
            match read_block(block, spill) {
                ContentBlock::Image(image) => images.push(image),
                block => {
                    let text = block.as_text().unwrap_or_default();
                    let speaker = if is_of_assistant(message) { "Assistant" } else { "User" };
                    texts.push(if names_speakers { format!("{speaker}: {text}") } else { text.to_owned() });
                }
            }
        }
    }
    let text = texts.join("\n\n");
    if text.trim().is_empty() && images.is_empty() {
        return Err("it has no content".to_owned());
    }
    Ok(PromptText { text, images })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt() -> PromptDefinition {
        let item = json!({"name": "review", "title": "Review", "arguments": [
            {"name": "file", "required": true}, {"name": "focus"}
        ]});
        PromptDefinition::read(&item).unwrap()
    }

    #[test]
    fn arguments_are_given_by_position_or_by_name() {
        let check = |typed: &str, expected: Value| {
            assert_eq!(prompt().arguments_of(typed).map(Value::Object), Ok(expected), "{typed}");
        };
        check("a.rs", json!({"file": "a.rs"}));
        check("a.rs the error paths", json!({"file": "a.rs", "focus": "the error paths"}));
        check("focus=speed a.rs", json!({"focus": "speed", "file": "a.rs"}));
        check("'my file' x=1", json!({"file": "my file", "focus": "x=1"}));
        check("\"file=a b\"", json!({"file": "a b"}));
        for (typed, says) in [
            ("", "\"file\" is missing; it takes <file> [focus]"),
            ("focus=x", "\"file\" is missing"),
            ("file=a focus=b c", "more arguments than it takes: <file> [focus]"),
        ] {
            let problem = prompt().arguments_of(typed).unwrap_err();
            assert!(problem.contains(says), "{problem}");
        }
        let without = PromptDefinition::read(&json!({"name": "x"})).unwrap();
        assert_eq!(without.arguments_of("y").unwrap_err(), "it takes no arguments");
        assert!(without.arguments_of(" ").unwrap().is_empty());
        assert_eq!((prompt().hint().as_deref(), without.hint()), (Some("<file> [focus]"), None));
    }

    #[test]
    fn prompts_that_cannot_be_used_say_why() {
        assert_eq!(prompt().description.as_deref(), Some("Review"));
        for item in [json!({}), json!({"name": ""}), json!({"name": "x", "arguments": [{"required": true}]})]
        {
            assert!(PromptDefinition::read(&item).is_err(), "{item}");
        }
        let many: Vec<Value> =
            (0..=MAX_ARGUMENTS).map(|number| json!({"name": number.to_string()})).collect();
        assert!(PromptDefinition::read(&json!({"name": "x", "arguments": many})).is_err());
    }

    #[test]
    fn messages_become_one_message() {
        let folder = tempfile::tempdir().unwrap();
        let storage = folder.path().into();
        let spill = Spill { storage: &storage, server: "s", tool: "p", reads_resources: false };
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        let answer = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Look at this."}},
            {"role": "user", "content": image},
            {"role": "user", "content": {"type": "resource", "resource": {"uri": "x:1", "text": "inside"}}},
        ]});
        let message = message_of(&answer, &spill).unwrap();
        assert_eq!(message.text, "Look at this.\n\ninside");
        assert_eq!(message.images, [ImageContent { data: "aGk=".into(), mime_type: "image/png".into() }]);
        let answer = json!({"messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi."}]},
            {"role": "assistant", "content": {"type": "text", "text": "Hello."}},
        ]});
        assert_eq!(message_of(&answer, &spill).unwrap().text, "User: Hi.\n\nAssistant: Hello.");
        for answer in [json!({}), json!({"messages": [{"role": "user"}]}), json!({"messages": 3})] {
            assert!(message_of(&answer, &spill).is_err(), "{answer}");
        }
    }
}
