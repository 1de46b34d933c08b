//! Screens as text, drawn from states that messages made.

use agentd_protocol::event::Event;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::{buffer::Buffer, layout::Rect, style::Color};
use serde_json::{Value, json};

use super::draw;
use crate::app::{Call, Chat, Effect, Message, Opened, Reply, SwitchTo, update};

/// A program on a screen of some size.
struct Program {
    chat: Chat,
    width: u16,
    height: u16,
}

fn state() -> Value {
    json!({
        "model": {"id": "opus", "name": "Opus", "api": "x", "provider": "anthropic", "reasoning": true, "contextWindow": 200_000},
        "thinkingLevel": "high", "isStreaming": false, "isCompacting": false, "steeringMode": "all", "followUpMode": "all",
        "sessionId": "0198c0de", "cwd": "/home/me/project", "autoCompactionEnabled": true, "messageCount": 2, "pendingMessageCount": 0,
    })
}

fn opened(messages: Value) -> Opened {
    Opened {
        state: serde_json::from_value(state()).unwrap(),
        messages: serde_json::from_value(messages).unwrap(),
        in_flight: None,
        pending_ui: Vec::new(),
        warnings: Vec::new(),
        commands: serde_json::from_value(
            json!([{"name": "review", "description": "Review a file", "source": "prompt",
            "sourceInfo": {"path": "/p", "source": "auto", "scope": "user", "origin": "top-level"}}]),
        )
        .unwrap(),
        stats: None,
        is_unconfigured: false,
        branch: Some("main".into()),
        is_again: false,
    }
}

impl Program {
    fn new(width: u16, height: u16, messages: Value) -> Self {
        let chat = Chat::new("/home/me/project".into(), Some("/home/me".into()));
        let mut program = Self { chat, width, height };
        program.take(Message::Opened(Box::new(opened(messages))));
        program
    }

    fn take(&mut self, message: Message) -> Vec<Effect> {
        let effects = update(&mut self.chat, message);
        self.buffer();
        effects
    }

    fn event(&mut self, event: Value) -> Vec<Effect> {
        let line = event.to_string();
        let event = Event::parse(event["type"].as_str().unwrap(), &line).unwrap().unwrap();
        self.take(Message::Event(Box::new(event)))
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
        self.take(Message::Key(KeyEvent::new(code, modifiers)))
    }

    fn control(&mut self, letter: char) -> Vec<Effect> {
        self.press(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn enter(&mut self) -> Vec<Effect> {
        self.press(KeyCode::Enter, KeyModifiers::NONE)
    }

    fn type_text(&mut self, text: &str) -> Vec<Effect> {
        text.chars().flat_map(|c| self.press(KeyCode::Char(c), KeyModifiers::NONE)).collect()
    }

    fn buffer(&mut self) -> Buffer {
        let area = Rect::new(0, 0, self.width, self.height);
        let mut buffer = Buffer::empty(area);
        draw(&mut self.chat, area, &mut buffer, true);
        buffer
    }

    /// The screen as text, without blanks at the ends of rows.
    fn screen(&mut self) -> String {
        let buffer = self.buffer();
        let mut text = String::new();
        for row in 0..self.height {
            let mut line = String::new();
            let mut column = 0;
            while column < self.width {
                let symbol = buffer[(column, row)].symbol();
                line.push_str(symbol);
                column += u16::try_from(agentd_client_text::columns(symbol)).unwrap().max(1);
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    fn assert_screen(&mut self, expected: &str) {
        let screen = self.screen();
        assert_eq!(screen.trim_matches('\n'), expected.trim_matches('\n'), "\n{screen}");
    }
}

fn delta(kind: &str, text: &str) -> Value {
    json!({"type": "message_update", "usage": {}, "assistantMessageEvent": {"type": kind, "contentIndex": 0, "delta": text, "content": text}})
}

fn call(id: &str, tool: &str, args: Value) -> Value {
    json!({"type": "tool_execution_start", "toolCallId": id, "toolName": tool, "args": args})
}

fn calls(effects: &[Effect]) -> Vec<&Call> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Call(call) = effect { Some(&**call) } else { None })
        .collect()
}

const USER: &str = r#"{"role":"user","content":"Fix the tests.","timestamp":0}"#;

fn user(text: &str) -> Value {
    json!({"type": "message_end", "message": {"role": "user", "content": text, "timestamp": 0}})
}

#[test]
fn a_new_session_says_what_answers_where_and_which_keys_there_are() {
    Program::new(60, 9, json!([])).assert_screen(
        "
 Model: anthropic/opus (/model chooses another)
 Folder: /home/me/project
 Keys: Enter sends, Ctrl-J begins a new line, @ names a
 file, / a command, /help shows all; Ctrl-D leaves.


────────────────────────────────────────────────────────────
› Ask, or /help
 opus · high · ~/project (main)
",
    );
}

#[test]
fn an_answer_with_a_tool_call_and_a_diff() {
    let mut program = Program::new(60, 18, json!([serde_json::from_str::<Value>(USER).unwrap()]));
    program.event(json!({"type": "agent_start"}));
    program.event(json!({"type": "message_start", "message": {"role": "assistant", "content": [], "stopReason": "pending", "timestamp": 0}}));
    program.event(delta("text_start", ""));
    program.event(delta("text_delta", "I **look** at it"));
    assert!(program.screen().contains("I look at it"), "{}", program.screen());
    program.event(delta("text_end", "I **look** at it"));
    program.event(call("1", "edit", json!({"path": "src/a.rs"})));
    assert!(program.screen().contains("• edit src/a.rs"));
    let end = json!({"type": "tool_execution_end", "toolCallId": "1", "toolName": "edit", "isError": false, "durationMs": 12,
        "result": {"content": [{"type": "text", "text": "done"}], "details": {"diff": "-1 old\n+1 new"}}});
    program.event(end);
    program.event(call("2", "bash", json!({"command": "cargo test"})));
    let failed = json!({"type": "tool_execution_end", "toolCallId": "2", "toolName": "bash", "isError": true, "durationMs": 1500,
        "result": {"content": [{"type": "text", "text": "test a ... FAILED\u{1b}[2J\n\nCommand exited with code 1"}]}});
    program.event(failed);
    program.event(json!({"type": "agent_settled", "aborted": false}));
    program.assert_screen(
        "
 › Fix the tests.

 I look at it

 ✓ edit src/a.rs  ok, +1 -1, 12 ms
     -1 old
     +1 new
 ✗ bash cargo test  failed, 1.5 s: Command exite…
     test a ... FAILED[2J

     Command exited with code 1




────────────────────────────────────────────────────────────
› Ask, or /help
 opus · high · ~/project (main)
",
    );
    let buffer = program.buffer();
    assert_eq!((buffer[(5, 5)].fg, buffer[(5, 6)].fg), (Color::Red, Color::Green));
}

#[test]
fn thinking_is_folded_until_it_is_asked_for() {
    let messages = json!([{"role": "assistant", "stopReason": "stop", "timestamp": 0, "content": [
        {"type": "thinking", "thinking": "First this.\nThen that."}, {"type": "text", "text": "Done."}]}]);
    let mut program = Program::new(40, 10, messages);
    assert!(program.screen().starts_with(" ▸ Thought: First this.\n\n Done.\n"), "{}", program.screen());
    program.control('o');
    assert!(
        program.screen().starts_with("   First this.\n   Then that.\n\n Done.\n"),
        "{}",
        program.screen()
    );
}

#[test]
fn enter_sends_and_while_it_works_steers() {
    let mut program = Program::new(60, 10, json!([]));
    program.type_text("Hi");
    let effects = program.enter();
    let [Call::Prompt(prompt)] = calls(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((prompt.message.as_str(), prompt.streaming_behavior), ("Hi", None));
    program.take(Message::Reply(Box::new(Reply::Accepted(prompt.request_key.clone()))));
    program.event(user("Hi"));
    program.event(user("From elsewhere"));
    assert!(
        program.screen().contains("› Hi\n\n from another client\n › From elsewhere"),
        "{}",
        program.screen()
    );
    program.event(json!({"type": "agent_start"}));
    program.type_text("Stop that");
    let effects = program.enter();
    let [Call::Prompt(prompt)] = calls(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(serde_json::to_value(prompt.streaming_behavior).unwrap(), "steer");
    program.type_text("And then");
    let effects = program.press(KeyCode::Enter, KeyModifiers::ALT);
    let [Call::Prompt(prompt)] = calls(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!(serde_json::to_value(prompt.streaming_behavior).unwrap(), "followUp");
    program.event(json!({"type": "queue_update", "steering": ["Stop that"], "followUp": ["And then"]}));
    let screen = program.screen();
    assert!(screen.contains("steers: Stop that\n") && screen.contains("after that: And then\n"), "{screen}");
    assert_eq!(calls(&program.press(KeyCode::Up, KeyModifiers::ALT)), [&Call::ClearQueue]);
    assert_eq!(calls(&program.press(KeyCode::Esc, KeyModifiers::NONE)), [&Call::Abort]);
}

#[test]
fn a_refused_prompt_comes_back_with_its_reason() {
    let mut program = Program::new(60, 12, json!([]));
    program.type_text("Hi");
    let effects = program.enter();
    let [Call::Prompt(prompt)] = calls(&effects)[..] else { panic!("{effects:?}") };
    let failure = crate::app::CallFailure {
        error: "No API key found.".into(),
        hint: Some("agentctl login".into()),
        code: Some("no_credentials".into()),
        is_lost: false,
    };
    program.take(Message::Reply(Box::new(Reply::PromptFailed(prompt.clone(), failure))));
    let screen = program.screen();
    assert!(
        screen.contains(" No API key found.\n agentctl login\n") && screen.contains("› Hi\n"),
        "{screen}"
    );
}

#[test]
fn what_was_not_answered_is_sent_again_with_its_key() {
    let mut program = Program::new(60, 12, json!([]));
    program.type_text("Hi");
    let effects = program.enter();
    let [Call::Prompt(prompt)] = calls(&effects)[..] else { panic!("{effects:?}") };
    program.type_text("half a sent");
    program.take(Message::Lost("agentd closed the connection".into()));
    let screen = program.screen();
    assert!(screen.contains("daemon lost") && screen.contains("› half a sent"), "{screen}");
    let again = Opened { is_again: true, ..opened(json!([])) };
    let effects = program.take(Message::Opened(Box::new(again)));
    assert_eq!(calls(&effects), [&Call::Prompt(prompt.clone())]);
    assert!(program.screen().contains("› half a sent"));
}

#[test]
fn a_question_about_a_call_is_answered_by_a_key() {
    let question = |id: &str| {
        json!({"type": "extension_ui_request", "id": id, "method": "permission", "title": "t", "tool": "bash", "command": "touch made",
            "reason": "the preset asks", "options": [{"decision": "once", "text": "Yes, this once"}, {"decision": "deny", "text": "No"}],
            "timeout": 60_000, "deadline": 0})
    };
    let mut program = Program::new(50, 12, json!([]));
    program.type_text("typed");
    assert_eq!(program.event(question("q1")), [Effect::Bell]);
    program.event(question("q2"));
    program.assert_screen(
        "
 Folder: /home/me/project
 Keys: Enter sends, Ctrl-J begins a new line, @
 names a file, / a command, /help shows all;
 Ctrl-D leaves.
── Allow this? bash (0 s to answer) ──────────────
  $ touch made
  Asked, since the preset asks.
  y  Yes, this once
  n  No
  m  No, with words to the model
  1 more wait
 opus · high · ~/project (main)
",
    );
    let effects = program.type_text("y");
    let [Call::Answer(answer)] = calls(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((answer.request_id.as_str(), answer.decision.as_str()), ("q1", "once"));
    program.event(json!({"type": "ui_request_resolved", "id": "q1", "by": "agentctl", "decision": "once"}));
    program.event(json!({"type": "ui_request_resolved", "id": "q2", "by": "editor", "decision": "deny"}));
    let screen = program.screen();
    assert!(
        screen.contains("Answered by editor: denied.") && !screen.contains("Answered by agentctl"),
        "{screen}"
    );
    assert!(screen.contains("› typed\n"), "{screen}");
}

#[test]
fn commands_are_offered_and_run() {
    let mut program = Program::new(50, 14, json!([]));
    program.type_text("/re");
    let screen = program.screen();
    assert!(
        screen.contains("resume") && screen.contains("review") && screen.contains("Review a file"),
        "{screen}"
    );
    program.type_text("sume");
    assert_eq!(calls(&program.enter()), [&Call::ListSessions { of_folder: true }]);
    program.type_text("/nothing");
    program.enter();
    assert!(program.screen().contains("There is no command /nothing."));
    program.control('c');
    program.type_text("/new");
    assert_eq!(program.enter(), [Effect::Switch(SwitchTo::New)]);
    program.type_text("/review src/a.rs");
    let effects = program.enter();
    assert!(matches!(calls(&effects)[..], [Call::Prompt(_)]), "{effects:?}");
}

#[test]
fn prompts_of_servers_are_offered_once_they_are_there() {
    let mut program = Program::new(60, 14, json!([]));
    let server = |prompts: Value| {
        json!({"type": "mcp_servers_change", "servers": [{
            "name": "files", "path": "/p", "transport": "stdio", "state": "connected", "enabled": true,
            "exposure": "deferred", "shared": false, "tools": [], "prompts": prompts,
        }]})
    };
    let effects = program.event(server(json!(["explain"])));
    assert_eq!(calls(&effects), [&Call::Commands]);
    assert!(program.event(server(json!(["explain"]))).is_empty(), "nothing has changed");
    let commands = json!([{"name": "mcp__files__explain", "description": "Explains a file", "source": "prompt",
        "sourceInfo": {"path": "/p", "source": "mcp", "scope": "user", "origin": "top-level"}}]);
    program.take(Message::Reply(Box::new(Reply::Commands(serde_json::from_value(commands).unwrap()))));
    program.type_text("/mcp");
    assert!(program.screen().contains("Explains a file"), "{}", program.screen());
    // One that is not known yet is for the daemon to judge.
    program.type_text("__files__other");
    assert!(matches!(calls(&program.enter())[..], [Call::Prompt(_)]));
}

#[test]
fn files_are_offered_for_the_newest_query() {
    let mut program = Program::new(50, 10, json!([]));
    let effects = program.type_text("see @ma");
    assert_eq!(effects.last(), Some(&Effect::FindFiles("ma".into())));
    program.take(Message::Files { query: "m".into(), files: vec!["late.rs".into()] });
    assert!(!program.screen().contains("late.rs"));
    program.take(Message::Files { query: "ma".into(), files: vec!["src/main.rs".into(), "a b.md".into()] });
    assert!(program.screen().contains("src/main.rs"));
    program.press(KeyCode::Down, KeyModifiers::NONE);
    program.press(KeyCode::Tab, KeyModifiers::NONE);
    assert!(program.screen().contains("› see @\"a b.md\""), "{}", program.screen());
}

#[test]
fn two_ctrl_c_leave_and_one_clears() {
    let mut program = Program::new(50, 10, json!([]));
    program.type_text("x");
    assert!(program.control('c').is_empty());
    assert!(program.control('c').is_empty());
    assert!(program.screen().contains("Ctrl-C again leaves"));
    assert_eq!(program.control('c'), [Effect::Quit]);
    assert_eq!(program.control('d'), [Effect::Quit]);
}

#[test]
fn every_size_is_drawn() {
    let mut program = Program::new(
        60,
        20,
        json!([serde_json::from_str::<Value>(USER).unwrap(), {"role": "assistant", "stopReason": "stop", "timestamp": 0,
        "content": [{"type": "text", "text": "# 見出し\n\n| a | b |\n|---|---|\n| 漢字 | 👩‍👩‍👧 |\n\n```rust\nfn main() {}\n```"}]}]),
    );
    program.type_text("漢字漢字漢字漢字漢字漢字漢字漢字");
    for (width, height) in [(1, 1), (19, 5), (20, 6), (50, 20), (77, 9), (200, 60)] {
        (program.width, program.height) = (width, height);
        program.buffer();
        program.control('o');
        program.press(KeyCode::PageUp, KeyModifiers::NONE);
        program.press(KeyCode::Up, KeyModifiers::NONE);
    }
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut program = Program::new(40, 8, json!([]));
    program.take(Message::Trouble("careful".into()));
    let area = Rect::new(0, 0, 40, 8);
    let mut buffer = Buffer::empty(area);
    draw(&mut program.chat, area, &mut buffer, false);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(program.buffer().content.iter().any(|cell| cell.fg != Color::Reset));
}

#[test]
fn nothing_of_others_steers_the_terminal() {
    let bad = "a\u{1b}]0;x\u{7}\u{202e}b\u{9b}2J\tc";
    let mut program = Program::new(
        70,
        30,
        json!([{"role": "user", "content": bad, "timestamp": 0},
        {"role": "assistant", "stopReason": "error", "errorMessage": bad, "timestamp": 0, "content": [
            {"type": "text", "text": bad}, {"type": "thinking", "thinking": bad},
            {"type": "toolCall", "id": "1", "name": bad, "arguments": {"command": bad}}]}]),
    );
    program.event(json!({"type": "session_info_changed", "name": bad}));
    program.event(json!({"type": "queue_update", "steering": [bad], "followUp": []}));
    program.chat.branch = Some(bad.into());
    program.chat.flash = Some(bad.into());
    program.control('o');
    let symbols: String = program.buffer().content.iter().map(|cell| cell.symbol().to_owned()).collect();
    assert!(!symbols.contains(agentd_protocol::terminal_text::steers), "{symbols:?}");
    assert!(symbols.contains("steers: a"));
}
