//! Questions to the user: who hears them, which answer counts, what happens when there is none.

use std::time::Duration;

use agentd_protocol::ui::UiResponse;
use agentd_session::{Asker, Dialog, DialogAnswer, Notice, UiAbilities};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, Subscription};

/// The setting `daemon.uiTimeoutMs`, where a test says nothing.
const UNATTENDED: Duration = Duration::from_secs(600);

struct Asked {
    answer: JoinHandle<DialogAnswer>,
    cancel: CancellationToken,
    id: String,
}

/// Asks, and waits until it was shown.
async fn ask(fixture: &mut Fixture, asker: Asker, dialog: Dialog) -> Asked {
    let (ui, cancel) = (fixture.session.ui().clone(), CancellationToken::new());
    let stop = cancel.clone();
    let answer = tokio::spawn(async move { ui.ask(asker, dialog, &stop).await });
    let request = fixture.first.until_event("extension_ui_request").await;
    Asked { answer, cancel, id: request["id"].as_str().expect("an id").to_owned() }
}

fn select() -> Dialog {
    Dialog::select("Which?", ["a", "b"])
}

impl Asked {
    async fn respond(&self, fixture: &Fixture, mut response: Value, by: &str) {
        response["id"] = json!(self.id);
        let response: UiResponse = serde_json::from_value(response).unwrap();
        fixture.session.answer_ui(response, by.to_owned(), UiAbilities::ALL).await;
    }

    async fn answer(self) -> DialogAnswer {
        self.answer.await.unwrap()
    }
}

#[tokio::test]
async fn the_first_answer_counts_and_late_ones_are_ignored() {
    let mut fixture = Fixture::new().await;
    let asked = ask(&mut fixture, Asker::Daemon, select()).await;
    let other = ask(&mut fixture, Asker::Daemon, Dialog::confirm("Sure?", "Really?")).await;
    // Clients of the plain wire are not asked by the daemon.
    let response: UiResponse = serde_json::from_value(json!({"id": asked.id, "value": "c"})).unwrap();
    fixture.session.answer_ui(response, "plain".to_owned(), UiAbilities::EXTENSIONS).await;
    asked.respond(&fixture, json!({"value": "a"}), "one").await;
    asked.respond(&fixture, json!({"value": "b"}), "two").await;
    let resolved = fixture.first.until_event("ui_request_resolved").await;
    assert_eq!((&resolved["id"], &resolved["by"]), (&json!(asked.id), &json!("one")));
    assert_eq!(asked.answer().await, DialogAnswer::Value("a".into()));
    other.respond(&fixture, json!({"confirmed": true}), "two").await;
    let resolved = fixture.first.until_event("ui_request_resolved").await;
    // The late answer to the first one said nothing.
    assert_eq!((&resolved["id"], &resolved["by"]), (&json!(other.id), &json!("two")));
    assert_eq!(other.answer().await, DialogAnswer::Confirmed(true));
}

#[tokio::test]
async fn a_dialog_is_over_after_its_own_limit_even_while_clients_are_there() {
    let mut fixture = Fixture::new().await;
    let _there = fixture.session.clients().enter(UiAbilities::ALL);
    tokio::time::pause();
    let limit = Duration::from_secs(5);
    let begun = Instant::now();
    let asked = ask(&mut fixture, Asker::Daemon, Dialog::confirm("Sure?", "m").within(limit)).await;
    let id = asked.id.clone();
    assert_eq!(asked.answer().await, DialogAnswer::Confirmed(false));
    assert!(begun.elapsed() >= limit && begun.elapsed() < 2 * limit);
    let resolved = fixture.first.until_event("ui_request_resolved").await;
    assert_eq!((&resolved["id"], resolved.get("by")), (&json!(id), None));
}

#[tokio::test]
async fn without_a_limit_somebody_is_waited_for_but_not_for_ever() {
    let mut fixture = Fixture::new().await;
    tokio::time::pause();
    let begun = Instant::now();
    let asked = ask(&mut fixture, Asker::Daemon, select()).await;
    tokio::time::sleep(UNATTENDED / 2).await;
    let there = fixture.session.clients().enter(UiAbilities::ALL);
    // As long as somebody is there, there is time.
    tokio::time::sleep(10 * UNATTENDED).await;
    assert!(!asked.answer.is_finished());
    drop(there);
    // A client of the plain wire is not asked by the daemon.
    let _plain = fixture.session.clients().enter(UiAbilities::EXTENSIONS);
    let left = begun.elapsed();
    assert_eq!(asked.answer().await, DialogAnswer::Nothing);
    assert_eq!((begun.elapsed() - left).as_secs(), UNATTENDED.as_secs());
}

#[tokio::test]
async fn clients_of_the_plain_wire_are_there_for_extensions() {
    let mut fixture = Fixture::new().await;
    let plain = fixture.session.clients().enter(UiAbilities::EXTENSIONS);
    tokio::time::pause();
    let asked = ask(&mut fixture, Asker::Extension, Dialog::editor("Text?", None)).await;
    tokio::time::sleep(10 * UNATTENDED).await;
    assert!(!asked.answer.is_finished());
    drop(plain);
    assert_eq!(asked.answer().await, DialogAnswer::Nothing);
}

#[tokio::test]
async fn giving_up_ends_a_dialog() {
    let mut fixture = Fixture::new().await;
    let asked = ask(&mut fixture, Asker::Extension, Dialog::input("Name?", None)).await;
    asked.cancel.cancel();
    fixture.first.until_event("ui_request_resolved").await;
    assert_eq!(asked.answer().await, DialogAnswer::Nothing);
}

#[tokio::test]
async fn the_end_of_the_session_answers_by_default() {
    let mut fixture = Fixture::new().await;
    let asked = ask(&mut fixture, Asker::Daemon, Dialog::confirm("Sure?", "m")).await;
    fixture.session.close().await;
    assert_eq!(asked.answer().await, DialogAnswer::Confirmed(false));
    // And afterwards at once.
    let late = fixture.session.ui().ask(Asker::Daemon, select(), &CancellationToken::new()).await;
    assert_eq!(late, DialogAnswer::Nothing);
    let events = fixture.first.read_out().await;
    assert_eq!(events.last().expect("events")["type"], "ui_request_resolved");
}

#[tokio::test]
async fn a_client_that_joins_sees_what_waits() {
    let mut fixture = Fixture::new().await;
    let asked = ask(&mut fixture, Asker::Daemon, select()).await;
    let attached = fixture.attach().await;
    let ids: Vec<&str> = attached.pending_ui.iter().map(|request| request.id.as_str()).collect();
    assert_eq!(ids, [asked.id.as_str()]);
    // And not among the events that follow.
    let mut joined = Subscription::new(attached.subscriber);
    asked.respond(&fixture, json!({"cancelled": true}), "one").await;
    joined.until_event("ui_request_resolved").await;
    assert_eq!(joined.events.len(), 1);
    assert_eq!(asked.answer().await, DialogAnswer::Nothing);
    assert!(fixture.attach().await.pending_ui.is_empty());
}

#[tokio::test]
async fn a_session_that_waits_for_an_answer_stays_in_memory() {
    let mut fixture = Fixture::new().await;
    let asked = ask(&mut fixture, Asker::Daemon, select()).await;
    assert_eq!(fixture.session.unload().await, None);
    asked.respond(&fixture, json!({"value": "a"}), "one").await;
    assert_eq!(asked.answer().await, DialogAnswer::Value("a".into()));
    assert!(fixture.session.unload().await.is_some());
}

#[tokio::test]
async fn notices_need_no_answer() {
    let mut fixture = Fixture::new().await;
    fixture.session.ui().tell(Asker::Extension, Notice::status("build", Some("green".into()))).await;
    let shown = fixture.first.until_event("extension_ui_request").await;
    assert_eq!((&shown["method"], &shown["statusText"]), (&json!("setStatus"), &json!("green")));
    assert!(fixture.attach().await.pending_ui.is_empty());
}
