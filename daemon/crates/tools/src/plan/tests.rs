use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::*;

/// A user who answers from a list, and says nothing after it.
struct Script(Mutex<Vec<UserAnswer>>, Mutex<Vec<String>>);

impl Script {
    fn next<'a>(&'a self, title: String, cancel: &'a CancellationToken) -> BoxFuture<'a, UserAnswer> {
        self.1.lock().unwrap().push(title);
        let answer = self.0.lock().unwrap().pop();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => {
                    cancel.cancelled().await;
                    UserAnswer::Nobody
                }
            }
        })
    }
}

impl AskUser for Script {
    fn choose<'a>(
        &'a self,
        title: String,
        options: Vec<String>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, UserAnswer> {
        assert_eq!(options, ["Approve", "Approve in a new session", "Revise"]);
        self.next(title, cancel)
    }

    fn type_in<'a>(&'a self, title: String, cancel: &'a CancellationToken) -> BoxFuture<'a, UserAnswer> {
        self.next(title, cancel)
    }
}

#[derive(Default)]
struct Review {
    is_off: AtomicBool,
    approved: Mutex<Vec<(ProposedPlan, bool)>>,
}

impl PlanReview for Review {
    fn is_open(&self) -> bool {
        !self.is_off.load(Ordering::Relaxed)
    }

    fn approve(&self, plan: ProposedPlan) -> BoxFuture<'_, Result<(), String>> {
        self.approved.lock().unwrap().push((plan, false));
        self.is_off.store(true, Ordering::Relaxed);
        Box::pin(async { Ok(()) })
    }

    fn approve_elsewhere(&self, plan: ProposedPlan) -> BoxFuture<'_, Result<Successor, String>> {
        self.approved.lock().unwrap().push((plan, true));
        Box::pin(async { Ok(Successor { id: "s2".into(), file: None }) })
    }
}

struct Fixture {
    tool: ProposePlanTool,
    review: Arc<Review>,
    user: Arc<Script>,
    _dir: tempfile::TempDir,
}

fn fixture(answers: &[&str], timeout: Option<Duration>) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let folder = SessionFolder::at(dir.path().join("local"));
    folder.write("go-plan.md", "# Go\n\n1. do it\n").unwrap();
    folder.write("empty-plan.md", " \n").unwrap();
    let answers = answers.iter().rev().map(|text| UserAnswer::Text((*text).to_owned())).collect();
    let user = Arc::new(Script(Mutex::new(answers), Mutex::default()));
    let review = Arc::new(Review::default());
    let tool = ProposePlanTool::new(folder, Arc::clone(&user) as _, Arc::clone(&review) as _, timeout);
    Fixture { tool, review, user, _dir: dir }
}

async fn propose(tool: &ProposePlanTool, arguments: Value) -> (String, Value, Option<bool>) {
    let progress = ToolProgress::new(|_| {});
    match tool.run(arguments, &progress, &CancellationToken::new()).await {
        Ok(result) => {
            let text = serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned();
            (text, result.details.unwrap()["decision"].clone(), result.terminate)
        }
        Err(error) => (error.0, Value::Null, None),
    }
}

#[tokio::test]
async fn a_plan_is_approved_once() {
    let Fixture { tool, review, user, _dir } = fixture(&["Approve"], None);
    assert_eq!(tool.exposure(), Exposure::ModelOnly);
    let (text, decision, terminate) = propose(&tool, json!({"title": "go"})).await;
    assert_eq!(text, "The user has approved the plan go. Plan mode is off: carry it out now.");
    assert_eq!((decision, terminate), (json!("approved"), None));
    let plan =
        ProposedPlan { title: "go".into(), name: "go-plan.md".into(), text: "# Go\n\n1. do it\n".into() };
    assert_eq!(*review.approved.lock().unwrap(), [(plan, false)]);
    assert_eq!(*user.1.lock().unwrap(), ["Carry out the plan go? (local://go-plan.md)"]);
    assert_eq!(tool.exposure(), Exposure::Hidden);
    let (again, ..) = propose(&tool, json!({"title": "go"})).await;
    assert_eq!(again, "Plan mode is off: there is nothing to approve.");
}

#[tokio::test]
async fn another_session_may_carry_it_out() {
    let Fixture { tool, review, _dir, .. } = fixture(&["Approve in a new session"], None);
    let (text, decision, terminate) =
        propose(&tool, json!({"title": "x", "path": "local:///go-plan.md"})).await;
    assert!(text.contains("the session s2 carries it out"), "{text}");
    assert_eq!((decision, terminate), (json!("approvedInNewSession"), Some(true)));
    assert!(review.approved.lock().unwrap()[0].1);
}

#[tokio::test]
async fn the_words_of_the_user_go_to_the_model() {
    for answers in [&["Revise", "shorter"][..], &["shorter"]] {
        let Fixture { tool, review, _dir, .. } = fixture(answers, None);
        let (text, decision, terminate) = propose(&tool, json!({"title": "go"})).await;
        assert_eq!(
            text,
            "The user wants the plan go changed: shorter\n\nPlan mode stays on: change local://go-plan.md, and propose it again."
        );
        assert_eq!((decision, terminate), (json!("revise"), None));
        assert!(review.is_open() && review.approved.lock().unwrap().is_empty());
    }
    let Fixture { tool, _dir, .. } = fixture(&["Revise", " "], None);
    assert_eq!(propose(&tool, json!({"title": "go"})).await.2, Some(true));
}

#[tokio::test]
async fn what_is_no_plan_is_not_shown() {
    let Fixture { tool, user, _dir, .. } = fixture(&[], None);
    for (arguments, expected) in [
        (json!({"title": "a b"}), "The title \"a b\" cannot be used"),
        (json!({"title": ""}), "The title \"\" cannot be used"),
        (json!({"title": "../x"}), "The title \"../x\" cannot be used"),
        (json!({"title": "go", "path": "plan.md"}), "The plan is a file of local://, not \"plan.md\""),
        (json!({"title": "none"}), "Not found: local://none-plan.md. There are: local://empty-plan.md"),
        (json!({"title": "empty"}), "local://empty-plan.md is empty."),
        (json!({"title": "go", "path": "local://../x"}), "local://../x leads out of"),
    ] {
        let (text, ..) = propose(&tool, arguments).await;
        assert!(text.starts_with(expected), "{text}");
    }
    assert!(user.1.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_nobody_decides_about_waits_and_the_run_ends() {
    let Fixture { tool, review, _dir, .. } = fixture(&[], Some(Duration::from_secs(60)));
    let (text, decision, terminate) = propose(&tool, json!({"title": "go"})).await;
    assert_eq!(
        text,
        "Nobody has decided about the plan go. It stays in local://go-plan.md, and plan mode stays on."
    );
    assert_eq!((decision, terminate), (json!("undecided"), Some(true)));
    assert!(review.is_open());
}
