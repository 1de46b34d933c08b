//! The end of a session, while others still want something of it.

use std::sync::Arc;

use agentd_ai::Delta;
use agentd_protocol::{
    command::{LookParams, SessionCommand},
    message::StopReason,
};
use agentd_session::Reply;
use serde_json::json;
use tokio::sync::Barrier;

use crate::fixture::{Fixture, soon};

/// How often a moment between two threads is looked for.
const TRIES: usize = 200;

/// A client that closes it finds that it has ended; otherwise it would close it again, and wait for an answer that
/// cannot come.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_was_closed_has_ended() {
    for _ in 0..TRIES {
        let fixture = Fixture::new().await;
        soon("the end", fixture.session.close()).await;
        assert!(fixture.session.has_ended());
        soon("the end, again", fixture.session.close()).await;
    }
}

/// A command is taken and answered, or its sender is told that it was not taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_command_that_a_closing_session_takes_is_answered() {
    for _ in 0..TRIES {
        let fixture = Fixture::new().await;
        let (subscriber, start) = (fixture.first.subscriber.id(), Arc::new(Barrier::new(3)));
        let answers = tokio::spawn(fixture.first.answers());
        let (session, begins) = (fixture.session.clone(), Arc::clone(&start));
        let sender = tokio::spawn(async move {
            begins.wait().await;
            let mut taken = 0;
            loop {
                let id = Some(json!(format!("state{taken}")));
                let command = SessionCommand::GetState(LookParams::default());
                if !session
                    .send(
                        command,
                        Reply {
                            subscriber,
                            id,
                            command: "get_state",
                            environment: None,
                            is_of_user: true,
                            hears_results: false,
                            memory: None,
                        },
                    )
                    .await
                {
                    return taken;
                }
                taken += 1;
            }
        });
        let closers = [fixture.session.clone(), fixture.session.clone()].map(|session| {
            let begins = Arc::clone(&start);
            tokio::spawn(async move {
                begins.wait().await;
                session.close().await;
            })
        });
        for closer in closers {
            soon("the end", closer).await.unwrap();
        }
        let taken = soon("a refusal", sender).await.unwrap();
        let answers = soon("the rest", answers).await.unwrap();
        assert_eq!(answers.len(), taken, "{:?}", answers.last());
    }
}

/// After the close its file can be opened at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_session_that_was_closed_has_let_go_of_its_file() {
    for _ in 0..TRIES {
        let mut fixture = Fixture::new().await;
        fixture.prompt("one").await;
        fixture.say(Delta::Started);
        fixture.say(Delta::Done { stop_reason: StopReason::Stop, raw_stop_reason: None });
        fixture.first.until_event("agent_settled").await;
        let file = fixture.session.file().unwrap().to_owned();
        soon("the end", fixture.session.close()).await;
        std::fs::File::open(&file).unwrap().try_lock().unwrap();
    }
}
