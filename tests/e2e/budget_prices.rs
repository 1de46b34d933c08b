//! Budgets count at the prices of the model: of long requests, and of what a provider's cache holds.

use agentd_e2e::{Home, MockServer, Reply, sse};
use serde_json::{Value, json};

use crate::budgets::{assert_ends_by, configure, introduced, spent};

fn home(server: &MockServer, cost: &Value, limit: f64) -> Home {
    let home = Home::new();
    configure(&home, server, cost);
    home.settings(&json!({"budgets": {"run": {"costUsd": limit}, "session": {"costUsd": 9}}}));
    home
}

fn call(usage: (u64, u64, u64)) -> Reply {
    let call = sse::call_start(0, "c", "bash") + &sse::call_arguments(0, r#"{"command":"true"}"#);
    Reply::stream(call + &sse::end("tool_calls", usage))
}

/// A runaway loop at these prices: what an answer costs, and how many fit.
fn check(cost: &Value, usage: (u64, u64, u64), price: f64) {
    let server = MockServer::always(call(usage));
    let limit = 0.35;
    let home = home(&server, cost, limit);
    let mut daemon = introduced(&home, &[]);
    let reached = assert_ends_by(&daemon.prompt("Go on for ever."), "run", "costUsd");
    let (used, requests) = (reached["used"].as_f64().unwrap(), server.requests().len() as f64);
    assert!((used - requests * price).abs() < 1e-9 && used <= limit, "{reached} {requests}");
    // Another call could not be paid: its input alone costs as much, or there were few tokens left for its answer.
    assert!(used > limit - price * 2.0 - 0.02, "{reached}");
    assert!((spent(&home) - used).abs() < 1e-9);
    let state = daemon.done(json!({"type": "get_state"}));
    assert!(
        (state["budgets"]["session"]["used"]["costUsd"].as_f64().unwrap() - used).abs() < 1e-9,
        "{state}"
    );
}

#[test]
fn a_long_request_costs_the_price_of_its_tier() {
    let tiers = json!([
        {"inputTokensAbove": 4000, "input": 6, "output": 22.5, "cacheRead": 0.6, "cacheWrite": 7.5},
        {"inputTokensAbove": 50_000, "input": 60, "output": 225, "cacheRead": 6, "cacheWrite": 75},
    ]);
    let cost = json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75, "tiers": tiers});
    check(&cost, (5000, 0, 200), 0.0345);
    check(&cost, (3000, 0, 200), 0.012);
}

#[test]
fn what_the_cache_holds_costs_its_price() {
    let cost = json!({"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75});
    check(&cost, (5000, 4000, 200), 0.0072);
    // Only the cache has a price.
    let cost = json!({"input": 0, "output": 0, "cacheRead": 3, "cacheWrite": 0});
    check(&cost, (5000, 4000, 200), 0.012);
}
