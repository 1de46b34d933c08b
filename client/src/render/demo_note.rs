//! What a user without a model is told.

/// Says that the demo model answers, and how to get a real one.
pub(crate) const DEMO_NOTE: &str = "\
No model is configured, so the built-in demo model answers: it only looks at the folder.
To use a real one, do one of these (`agentctl doctor` says what is there and what is missing):
  export ANTHROPIC_API_KEY=...    or OPENAI_API_KEY, or the variable of another provider
  agentctl login anthropic        stores a key
  agentctl setup local            uses a model server on this machine, such as Ollama or llama.cpp
";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_it_names_is_there() {
        let cli = Cli::command();
        let commands: Vec<Vec<&str>> = DEMO_NOTE
            .split("agentctl ")
            .skip(1)
            .map(|rest| rest.split([' ', '`']).filter(|word| !word.is_empty()).take(2).collect())
            .collect();
        assert_eq!(commands.len(), 3);
        for words in commands {
            let command = cli.find_subcommand(words[0]).unwrap_or_else(|| panic!("{words:?}"));
            if command.has_subcommands() {
                assert!(command.find_subcommand(words[1]).is_some(), "{words:?}");
            }
        }
    }
}
