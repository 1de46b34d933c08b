//! Cells of JavaScript.

use agentd_kernels::Language;
use serde_json::json;

use crate::bench::{Bench, text};

#[tokio::test]
async fn a_cell_sees_the_state_of_those_before() {
    let Some(bench) = Bench::new(Language::JavaScript) else { return };
    assert_eq!(bench.text("const x = 20; let y = await Promise.resolve(1); class A {}").await, "(no output)");
    assert_eq!(bench.text("x + y").await, "21");
    assert_eq!(bench.text("const x = 6; function f() { return x * 7 } f()").await, "42", "declared again");
    assert_eq!(bench.text("new A()").await, "A {}");
    let modules = "import os, { platform as name } from 'node:os'; import * as path from 'node:path';\n\
                   const { existsSync } = await import('node:fs'); [name(), typeof os.cpus, path.sep, existsSync('/'), \"import('x')\"]";
    assert_eq!(bench.text(modules).await, "[ 'linux', 'function', '/', true, \"import('x')\" ]");
    assert_eq!(bench.text("require('node:path').basename('/a/b')").await, "'b'");
}

#[tokio::test]
async fn output_and_failures() {
    let Some(bench) = Bench::new(Language::JavaScript) else { return };
    let code = "console.log('a'); require('child_process').execSync('echo b', {stdio: 'inherit'}); console.error('c')";
    assert_eq!(bench.text(code).await, "a\nb\nc");
    let failed = bench.run("function f() { throw new Error('boo') }\nf()").await;
    assert_eq!(
        text(&failed),
        "Error: boo\n    at f (<cell>:1:22)\n    at <cell>:2:1\n\n\nCommand exited with code 1"
    );
    let failed = bench.run("let = = 1").await;
    assert!(text(&failed).starts_with("SyntaxError: "), "{}", text(&failed));
    let failed = bench.run("process.exit(4)").await;
    assert!(text(&failed).ends_with("Command exited with code 4"), "{}", text(&failed));
    let late = "setTimeout(() => { throw new Error('late') }, 1); await new Promise((done) => setTimeout(done, 20)); 'on'";
    assert!(bench.text(late).await.ends_with("'on'"), "a failure that nobody waits for ends nothing");
}

#[tokio::test]
async fn rich_values_are_shown() {
    let Some(bench) = Bench::new(Language::JavaScript) else { return };
    assert_eq!(
        bench.text("display([{a: 1, b: 'x|y'}, {a: 2}])").await,
        "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| 2 |  |"
    );
    let html = "display({'text/html': '<table><tr><th>a</th></tr><tr><td>1 &lt; 2</td></tr></table>'})";
    assert_eq!(bench.text(html).await, "| a |\n| --- |\n| 1 < 2 |");
    let shown = bench.run("display(Buffer.from('89504e470d0a1a0a', 'hex'))").await;
    assert_eq!((text(&shown), shown.content.len()), ("(displayed 1 image(s); no text output)", 2));
    let shown = bench.run("display({'application/json': {n: 1}})").await;
    assert_eq!(shown.details.unwrap()["jsonOutputs"], json!([{"n": 1}]));
}

#[tokio::test]
async fn a_loop_that_gives_no_turn_is_interrupted_and_the_state_stays() {
    let Some(bench) = Bench::new(Language::JavaScript) else { return };
    bench.text("let kept = 5").await;
    let late = bench.run_with("while (true) {}", json!({"timeout": 1})).await;
    assert!(
        text(&late).ends_with("it was interrupted, and the kernel keeps its variables"),
        "{}",
        text(&late)
    );
    let late = bench.run_with("await new Promise(() => {})", json!({"timeout": 1})).await;
    assert!(
        text(&late).ends_with("it was interrupted, and the kernel keeps its variables"),
        "{}",
        text(&late)
    );
    assert_eq!(bench.text("kept").await, "5");
}
