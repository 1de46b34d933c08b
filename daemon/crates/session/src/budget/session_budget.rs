//! The accounts of a session: their limits, what is spent, and which of them ended the run.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use agentd_budget::{Account, Amounts, DayFile, Limits, Quote, dollars, nanodollars};
use agentd_protocol::{
    budget::{BudgetQuantity, BudgetReached, BudgetScope, BudgetState},
    error::{ErrorCode, Failure},
    message::{Cost, Usage},
    model::Model,
    settings::{BudgetLimits, BudgetSettings, UnknownPrice},
};
use agentd_store::{SessionTree, Spending, own_spending};
use tokio::{sync::Notify, task::spawn_blocking};

use crate::subagent_records::subagents_in;

/// Fires when a reservation of this process was settled: what waits for it looks again.
pub(super) static SETTLED: Notify = Notify::const_new();

/// The budgets of one session.
pub(crate) struct SessionBudget {
    /// The limits of each run.
    run_limits: BudgetLimits,
    unknown_price: UnknownPrice,
    pub(super) day: Option<Day>,
    /// The budgets of the session that a subagent works for: what it spends counts to them, too.
    pub(super) parent: Option<Arc<Self>>,
    pub(super) accounts: Mutex<Accounts>,
}

/// The budget of the day.
pub(super) struct Day {
    pub(super) file: DayFile,
    pub(super) limits: Limits,
}

/// What changes while the session works.
#[derive(Default)]
pub(super) struct Accounts {
    pub(super) session: Account,
    pub(super) run: Option<RunAccount>,
    /// What model calls took of which no entry tells: tokens and their cost.
    pub(super) unsaid: Amounts,
    /// The runs so far.
    runs: u64,
    /// What was spent today when the file was last looked at.
    pub(super) day_used: Amounts,
}

/// The account of the run at work.
pub(super) struct RunAccount {
    pub(super) account: Account,
    /// Tells it from other runs of the session.
    pub(super) number: u64,
    pub(super) begun: Instant,
    /// The budget that ended the run.
    pub(super) reached: Option<BudgetReached>,
    /// Whether clients were told.
    is_told: bool,
}

/// Why a step may not be taken.
#[derive(Debug)]
pub(crate) enum Denied {
    /// A budget does not permit it.
    Reached(BudgetReached),
    /// The sum of the day cannot be kept.
    Broken(String),
}

impl Denied {
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::Reached(reached) => reached.failure(),
            Self::Broken(error) => Failure::new(ErrorCode::Io, error.clone()),
        }
    }
}

impl SessionBudget {
    /// The budgets of settings and flags. Where the session is limited, what its entries spent is summed up.
    pub(crate) fn new(
        settings: Option<&BudgetSettings>,
        flags: BudgetLimits,
        agent_dir: &Path,
        tree: &SessionTree,
        parent: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let settings = settings.cloned().unwrap_or_default();
        let limits = settings.session.map(Limits::from).unwrap_or_default();
        let used = if limits.is_empty() {
            Amounts::default()
        } else {
            spent_by(own_spending(tree)).plus(spent_by_subagents(tree))
        };
        // A subagent's day is counted by the session that it works for.
        let day = settings.day.map(Limits::from).filter(|limits| !limits.is_empty() && parent.is_none());
        Arc::new(Self {
            run_limits: settings.run.unwrap_or_default().stricter(flags),
            unknown_price: settings.unknown_price.unwrap_or_default(),
            day: day.map(|limits| Day { file: DayFile::in_folder(agent_dir), limits }),
            parent,
            accounts: Mutex::new(Accounts { session: Account::new(limits, used), ..Accounts::default() }),
        })
    }

    pub(super) fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything is limited now, here or in the session that a subagent works for.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited_itself() || self.parent.as_ref().is_some_and(|parent| parent.is_limited())
    }

    pub(super) fn is_limited_itself(&self) -> bool {
        let accounts = self.accounts();
        self.day.is_some()
            || !accounts.session.limits.is_empty()
            || accounts.run.as_ref().is_some_and(|run| !run.account.limits.is_empty())
    }

    /// The limits of the run that begins with a prompt.
    pub(super) fn begin_run(&self, prompt: Option<BudgetLimits>) {
        let limits = self.run_limits.stricter(prompt.unwrap_or_default());
        let account = Account::new(limits.into(), Amounts::default());
        let mut accounts = self.accounts();
        accounts.runs += 1;
        let number = accounts.runs;
        accounts.run =
            Some(RunAccount { account, number, begun: Instant::now(), reached: None, is_told: false });
    }

    /// Whether the price of a model has to be known, and is not.
    pub(crate) fn lacks_price(&self, model: &Model) -> Option<Failure> {
        if self.unknown_price == UnknownPrice::Zero || agentd_ai::has_price(model) || !self.limits_cost() {
            return None;
        }
        let text = format!(
            "The price of the model {}/{} is not known, and a budget limits what model calls may cost.",
            model.provider, model.id
        );
        let hint = "Set its price (cost in models.json), or set budgets.unknownPrice to \"zero\" where it costs nothing.";
        Some(Failure::new(ErrorCode::Unsupported, text).hint(hint))
    }

    fn limits_cost(&self) -> bool {
        let accounts = self.accounts();
        let run = accounts.run.as_ref().and_then(|run| run.account.limits.cost);
        let day = self.day.as_ref().and_then(|day| day.limits.cost);
        accounts.session.limits.cost.or(run).or(day).is_some()
    }

    /// Whether what is left of the session and of the day is enough for a step. Reserves nothing, and waits for nothing.
    pub(crate) async fn check(&self, quote: Quote) -> Result<(), Denied> {
        {
            let accounts = self.accounts();
            let Account { limits, .. } = accounts.session;
            let used = accounts.session.used();
            let missing = limits.used_up(used).or_else(|| quote.fit(limits.left(used)).err());
            if let Some(what) = missing {
                return Err(Denied::Reached(limits.reached(BudgetScope::Session, what, used)));
            }
        }
        let Some(day) = &self.day else { return Ok(()) };
        let (file, limits) = (day.file.clone(), day.limits);
        let looked = spawn_blocking(move || file.look()).await;
        let used = looked.map_err(|error| Denied::Broken(error.to_string()))?;
        let used = used.map_err(|error| Denied::Broken(error.to_string()))?.used;
        self.accounts().day_used = used;
        match limits.used_up(used).or_else(|| quote.fit(limits.left(used)).err()) {
            Some(what) => Err(Denied::Reached(limits.reached(BudgetScope::Day, what, used))),
            None => Ok(()),
        }
    }

    /// A budget cut an answer off. Ends the run, if there is one.
    pub(super) fn cut_off(&self, scope: BudgetScope, what: BudgetQuantity) -> BudgetReached {
        let reached = {
            let accounts = self.accounts();
            match (scope, &accounts.run, &self.day) {
                (BudgetScope::Run, Some(run), _) => {
                    run.account.limits.reached(scope, what, run.account.used())
                }
                (BudgetScope::Day, _, Some(day)) => day.limits.reached(scope, what, accounts.day_used),
                _ => accounts.session.limits.reached(BudgetScope::Session, what, accounts.session.used()),
            }
        };
        self.reach(reached);
        reached
    }

    /// A budget ends the run, if there is one.
    pub(super) fn reach(&self, reached: BudgetReached) {
        if let Some(run) = &mut self.accounts().run {
            run.reached.get_or_insert(reached);
        }
    }

    /// The budget that ended the run.
    pub(crate) fn reached(&self) -> Option<BudgetReached> {
        self.accounts().run.as_ref().and_then(|run| run.reached)
    }

    /// The budget that ended the run, once.
    pub(crate) fn take_untold(&self) -> Option<BudgetReached> {
        let mut accounts = self.accounts();
        let run = accounts.run.as_mut().filter(|run| !run.is_told)?;
        let reached = run.reached?;
        run.is_told = true;
        Some(reached)
    }

    /// What model calls took of which no entry tells, once; where it is of use.
    pub(crate) fn take_unsaid(&self) -> Option<Usage> {
        let Amounts { cost, tokens, .. } = std::mem::take(&mut self.accounts().unsaid);
        (cost > 0 || tokens > 0).then(|| Usage {
            input: tokens,
            total_tokens: tokens,
            cost: Cost { total: dollars(cost), ..Cost::default() },
            ..Usage::default()
        })
    }

    /// The limits and what is spent; `None` where nothing is limited.
    pub(crate) fn state(&self) -> Option<BudgetState> {
        let accounts = self.accounts();
        let run = match &accounts.run {
            Some(run) => run.account.limits.shown(run.spent()),
            None => Limits::from(self.run_limits).shown(Amounts::default()),
        };
        let now = accounts.run.as_ref().map_or(0, |run| millis(run.begun.elapsed()));
        let in_run = Amounts { millis: now, ..Amounts::default() };
        let session = accounts.session.limits.shown(accounts.session.used().plus(in_run));
        let day = self.day.as_ref().map(|day| day.limits.shown(accounts.day_used));
        let [run, session] = [run, session].map(|scope| Some(scope).filter(|scope| !scope.limits.is_empty()));
        (run.is_some() || session.is_some() || day.is_some()).then_some(BudgetState {
            run,
            session,
            day,
            unknown_price: self.unknown_price,
        })
    }

    /// The time that the run may still take, and whose limit that is; `None` where time is not limited, but for the day's.
    pub(super) fn time_left(&self) -> Option<(Duration, BudgetScope)> {
        let accounts = self.accounts();
        let run = accounts.run.as_ref()?;
        let spent = millis(run.begun.elapsed());
        let of_run = run.account.limits.millis.map(|limit| (limit.saturating_sub(spent), BudgetScope::Run));
        let before = accounts.session.used().millis;
        let of_session = accounts.session.limits.millis;
        let of_session = of_session
            .map(|limit| (limit.saturating_sub(before).saturating_sub(spent), BudgetScope::Session));
        let (left, scope) = of_run.into_iter().chain(of_session).min_by_key(|(left, _)| *left)?;
        Some((Duration::from_millis(left), scope))
    }

    /// The time of the run is over.
    pub(super) fn time_is_over(&self, scope: BudgetScope) {
        let reached = {
            let accounts = self.accounts();
            let Some(run) = &accounts.run else { return };
            let spent = run.spent();
            match (scope, &self.day) {
                (BudgetScope::Run, _) => run.account.limits.reached(scope, BudgetQuantity::Seconds, spent),
                (BudgetScope::Day, Some(day)) => {
                    day.limits.reached(scope, BudgetQuantity::Seconds, accounts.day_used)
                }
                _ => {
                    let used =
                        accounts.session.used().plus(Amounts { millis: spent.millis, ..Amounts::default() });
                    accounts.session.limits.reached(BudgetScope::Session, BudgetQuantity::Seconds, used)
                }
            }
        };
        self.reach(reached);
    }
}

impl RunAccount {
    /// What the run spent, its time included.
    fn spent(&self) -> Amounts {
        Amounts { millis: millis(self.begun.elapsed()), ..self.account.used() }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What the session's subagents spent.
fn spent_by_subagents(tree: &SessionTree) -> Amounts {
    let work = subagents_in(tree).into_iter().filter_map(|subagent| subagent.progress);
    work.fold(Amounts::default(), |sum, progress| {
        sum.plus(Amounts {
            cost: nanodollars(progress.cost),
            tokens: progress.tokens,
            turns: progress.requests,
            tool_calls: progress.tool_calls,
            millis: 0,
        })
    })
}

/// What entries spent.
fn spent_by(entries: impl Iterator<Item = Spending>) -> Amounts {
    entries.fold(Amounts::default(), |sum, entry| {
        sum.plus(Amounts {
            cost: nanodollars(entry.usage.cost.total),
            tokens: entry.tokens(),
            turns: u64::from(entry.is_answer),
            tool_calls: u64::from(entry.is_tool_result),
            millis: entry.duration_ms,
        })
    })
}
