//! The end of a session, and of its stay in memory.

use std::time::Duration;

use agentd_protocol::error::{ErrorCode, Failure};
use tokio::sync::mpsc;

use crate::{actor::Actor, feed::Feed, handle::Message, run_message::RunMessage};

/// How long background processes of a closing session have between SIGTERM and SIGKILL.
pub(crate) const BACKGROUND_GRACE: Duration = Duration::from_secs(2);

impl Actor {
    /// Ends everything that works for the session, and stores how it ended.
    /// `taken` are messages that were taken and not looked at.
    pub(crate) async fn close(
        &mut self,
        taken: impl Iterator<Item = Message>,
        inbox: &mut mpsc::Receiver<Message>,
        from_tasks: &mut mpsc::Receiver<RunMessage>,
    ) {
        self.closing = true;
        self.run.cancel();
        self.compacting.cancel();
        self.user_bash.abort_all();
        self.give_up_dialogs();
        if self.going_on.give_up() && !self.run.is_active() {
            self.settle_intent_log();
        }
        // Tasks end only once their last steps are taken.
        while !self.tasks.is_empty() {
            tokio::select! {
                Some(message) = from_tasks.recv() => self.on_run_message(message).await,
                Some(_) = self.tasks.join_next() => {}
            }
        }
        while let Ok(message) = from_tasks.try_recv() {
            self.on_run_message(message).await;
        }
        self.give_up_requests();
        // Whoever closes a session knows what waits in it.
        self.forget_waiting().await;
        self.retry_failed_writes().await;
        self.journal.intent_log().settled().await;
        self.context.processes.terminate(BACKGROUND_GRACE).await;
        self.tell_last_ends().await;
        self.tell_idle();
        self.refuse_late(taken, inbox).await;
        self.feed.close();
    }

    /// Takes no more messages, and answers those that came too late.
    ///
    /// Done before anybody is told of the end: a message that is sent in the moment in which the inbox is dropped would stay in
    /// it, neither taken nor given back, and its sender would wait for ever.
    pub(crate) async fn refuse_late(
        &self,
        taken: impl Iterator<Item = Message>,
        inbox: &mut mpsc::Receiver<Message>,
    ) {
        inbox.close();
        let refuse = |message: Message| {
            message.refuse(&self.feed, || Failure::new(ErrorCode::NoSession, "The session has ended."));
        };
        taken.for_each(refuse);
        while let Some(message) = inbox.recv().await {
            refuse(message);
        }
    }
}

impl Message {
    /// Answers a message that came too late. Whoever waits for it otherwise learns of the end when it is dropped.
    pub(crate) fn refuse(self, feed: &Feed, why: impl FnOnce() -> Failure) {
        match self {
            Self::Command(asked) => asked.1.fail(feed, why()),
            Self::Tools(message) => message.too_late(feed),
            Self::Attach { .. }
            | Self::UiResponse(_)
            | Self::AskTrust
            | Self::WhenIdle(_)
            | Self::Header(_)
            | Self::Copy { .. }
            | Self::Reopen(..)
            | Self::Unload(_)
            | Self::Close => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::command::{LookParams, SessionCommand};
    use serde_json::{Value, json};

    use super::*;
    use crate::{event_log::FeedItem, feed::FeedLimits, reply::Reply, tools::ToolsMessage};

    #[tokio::test]
    async fn what_comes_too_late_is_answered() {
        let feed = Feed::new(FeedLimits::default());
        let subscriber = feed.attach();
        let reply = |id: &str, command| Reply {
            subscriber: subscriber.id(),
            id: Some(json!(id)),
            command,
            environment: None,
            memory: None,
        };
        let asked = SessionCommand::GetState(LookParams::default());
        let too_late = [
            Message::Command(Box::new((asked, reply("1", "get_state")))),
            Message::Tools(Box::new(ToolsMessage::Left {
                tools: vec!["look_up".into()],
                reply: Some(reply("2", "unregister_tools")),
            })),
            Message::Tools(Box::new(ToolsMessage::Left { tools: Vec::new(), reply: None })),
        ];
        for message in too_late {
            message.refuse(&feed, || Failure::new(ErrorCode::NoSession, "Over."));
        }
        let mut items = Vec::new();
        assert!(subscriber.next_items(&mut items).await);
        let answers: Vec<Value> = items
            .iter()
            .map(|item| match item {
                FeedItem::Reply { line } => serde_json::from_slice(line).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!((&answers[0]["id"], &answers[0]["code"]), (&json!("1"), &json!("no_session")));
        assert_eq!((&answers[1]["id"], &answers[1]["data"]["tools"]), (&json!("2"), &json!(["look_up"])));
    }
}
