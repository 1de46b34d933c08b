//! Logins that something else than agentd runs, such as an extension, and that clients finish and cancel like others.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use tokio::{sync::watch, time::sleep};

use super::{
    error::LoginError,
    flow::BROWSER_LIFE,
    login::{FinishedLogin, Logins, Open, Outcome, forget},
};

/// A login of something else, until its end is told. Dropped before that, it counts as cancelled.
pub struct OutsideLogin {
    id: String,
    logins: Logins,
    open: Weak<Open>,
    outcome: Option<watch::Sender<Outcome>>,
    cancelled: watch::Receiver<bool>,
}

impl fmt::Debug for OutsideLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideLogin").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Logins {
    /// Begins a login that something else runs; one of the same provider that is under way is cancelled.
    ///
    /// # Errors
    /// [`LoginError::TooMany`].
    pub fn begin_outside(&self, provider: &str) -> Result<OutsideLogin, LoginError> {
        self.make_room(provider)?;
        let id = uuid::Uuid::new_v4().to_string();
        let (tell, outcome) = watch::channel(None);
        let (cancel, cancelled) = watch::channel(false);
        let open = Arc::new(Open::outside(provider.to_owned(), outcome, cancel));
        let weak = Arc::downgrade(&open);
        self.open().insert(id.clone(), open);
        Ok(OutsideLogin { id, logins: self.clone(), open: weak, outcome: Some(tell), cancelled })
    }
}

impl OutsideLogin {
    /// Names the login.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits until the login is given up: cancelled by a client, replaced by another with the provider, or not waited for by anyone for ten
    /// minutes. Cancel safe.
    pub async fn given_up(&self) {
        let unattended = async {
            loop {
                sleep(BROWSER_LIFE).await;
                if !self.open.upgrade().is_some_and(|open| open.is_awaited()) {
                    return;
                }
            }
        };
        let mut cancelled = self.cancelled.clone();
        tokio::select! {
            // An error says that nobody can ask for it any more.
            _ = cancelled.wait_for(|cancelled| *cancelled) => {}
            () = unattended => {}
        }
    }

    /// Tells how the login has ended: who waits for it, and, for ten minutes, the first who asks.
    pub fn end(mut self, outcome: Result<FinishedLogin, LoginError>) {
        if let Some(tell) = self.outcome.take() {
            tell.send_replace(Some(outcome));
            let (all, id) = (Arc::downgrade(&self.logins.0), std::mem::take(&mut self.id));
            tokio::spawn(async move {
                // What is told stays for as long as there is a sender.
                let _tell = tell;
                sleep(BROWSER_LIFE).await;
                forget(&all, &id);
            });
        }
    }
}

impl Drop for OutsideLogin {
    fn drop(&mut self) {
        if self.outcome.is_some() {
            self.logins.cancel(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done() -> FinishedLogin {
        FinishedLogin { provider: "p".to_owned(), replaced: false, models: Some(2) }
    }

    /// Drops a future that is not ready at once.
    async fn does_not_end<T>(future: impl Future<Output = T>) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }

    #[tokio::test]
    async fn its_end_is_told_to_who_waits_and_to_who_asks_later() {
        let logins = Logins::default();
        let login = logins.begin_outside("p").unwrap();
        let id = login.id().to_owned();
        let (finished, ()) = tokio::join!(logins.finish(&id, None), async { login.end(Ok(done())) });
        assert_eq!(finished, Ok(done()));
        let login = logins.begin_outside("p").unwrap();
        let id = login.id().to_owned();
        login.end(Err(LoginError::Outside("it said no".to_owned())));
        assert_eq!(logins.finish(&id, None).await, Err(LoginError::Outside("it said no".to_owned())));
        assert_eq!(logins.finish(&id, None).await, Err(LoginError::NotThere(id)));
    }

    #[tokio::test]
    async fn it_is_given_up_by_a_cancel_by_another_and_by_who_waits_no_more() {
        let logins = Logins::default();
        let first = logins.begin_outside("p").unwrap();
        let second = logins.begin_outside("p").unwrap();
        first.given_up().await;
        assert!(logins.cancel(second.id()));
        second.given_up().await;
        let third = logins.begin_outside("p").unwrap();
        let id = third.id().to_owned();
        assert!(does_not_end(logins.finish(&id, None)).await);
        third.given_up().await;
        let fourth = logins.begin_outside("p").unwrap();
        let id = fourth.id().to_owned();
        drop(fourth);
        assert_eq!(logins.finish(&id, None).await, Err(LoginError::NotThere(id)));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_it_forever() {
        let login = Logins::default().begin_outside("p").unwrap();
        login.given_up().await;
    }

    #[tokio::test]
    async fn it_takes_no_code_and_goes_on() {
        let logins = Logins::default();
        let login = logins.begin_outside("p").unwrap();
        let pasted = crate::Secret::new("hush");
        let refused = logins.finish(login.id(), Some(&pasted)).await.unwrap_err();
        assert!(matches!(refused, LoginError::Pasted(_)), "{refused}");
        assert!(does_not_end(login.given_up()).await);
    }
}
