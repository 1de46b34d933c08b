//! Cells of Python.

use std::fs;

use agentd_kernels::Language;
use agentd_protocol::message::ContentBlock;
use serde_json::json;

use crate::bench::{Bench, text};

/// A PNG of one pixel, as an expression.
const PNG: &str = "bytes.fromhex('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001\
                   f61738550000000049454e44ae426082')";

#[tokio::test]
async fn a_cell_sees_the_state_of_those_before() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    assert_eq!(bench.text("x = 20\ndef double(n): return 2 * n").await, "(no output)");
    assert_eq!(bench.text("x += 1; double(x)").await, "42");
    assert_eq!(bench.text("_ + 1").await, "43");
    assert_eq!(bench.text("import asyncio\nawait asyncio.sleep(0, 'awaited')").await, "'awaited'");
    assert_eq!(bench.text("x;").await, "(no output)");
    let fresh = bench.run_with("x", json!({"reset": true})).await;
    assert_eq!(fresh.is_error, Some(true));
    assert!(text(&fresh).contains("NameError") && text(&fresh).ends_with("Command exited with code 1"));
    assert!(!text(&fresh).contains("earlier cells"), "it was asked for");
}

#[tokio::test]
async fn output_has_the_order_in_which_it_was_written() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let code = "import os, sys, subprocess\nfor i in range(20):\n    print('a', i)\n    os.system(f'echo b {i}')\n    print('c', i, \
                file=sys.stderr)\n    subprocess.run(['echo', f'd {i}'])\n    display(f'e {i}')";
    let expected: String = (0..20).map(|i| format!("a {i}\nb {i}\nc {i}\nd {i}\ne {i}\n")).collect();
    assert_eq!(bench.text(code).await, expected.trim_end());
}

#[tokio::test]
async fn failures_are_short_and_say_where() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    bench.text("import json\ndef load(s):\n    return json.loads(s)").await;
    let failed = bench.run("load('{')").await;
    let said = text(&failed);
    assert!(said.contains("File \"<cell 1>\", line 3, in load\n    return json.loads(s)"), "{said}");
    assert!(said.contains("JSONDecodeError") && said.lines().count() < 25, "{said}");
    assert!(!said.contains("agentd kernel"), "{said}");
    assert_eq!(failed.details.unwrap()["cells"][0]["status"], "error");
    let failed = bench.run("if True print(1)").await;
    assert!(
        text(&failed).contains("SyntaxError") && !text(&failed).contains("Traceback"),
        "{}",
        text(&failed)
    );
    let failed = bench.run("import sys; sys.exit(7)").await;
    assert!(text(&failed).ends_with("Command exited with code 7"));
    let failed = bench.run("input('name? ')").await;
    assert!(text(&failed).contains("Cells have no input"), "{}", text(&failed));
    assert_eq!(bench.text("1").await, "1", "the kernel goes on");
}

#[tokio::test]
async fn images_tables_and_json_are_shown() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let shown = bench.run(&format!("display({PNG})")).await;
    assert_eq!(text(&shown), "(displayed 1 image(s); no text output)");
    let ContentBlock::Image(image) = &shown.content[1] else { panic!("{shown:?}") };
    assert!(image.mime_type == "image/png" && image.data.starts_with("iVBORw0KGgo"), "{image:?}");
    let table = "class Frame:\n    def _repr_html_(self):\n        return '<style>x</style><table><thead><tr><th></th><th>a</th></tr></thead>\
                 <tbody><tr><th>0</th><td>1 &lt; 2</td></tr></tbody></table>'\nFrame()";
    assert_eq!(bench.text(table).await, "|  | a |\n| --- | --- |\n| 0 | 1 < 2 |");
    let shown = bench.run("display({'application/json': {'n': [1, 2]}}, raw=True)").await;
    assert_eq!(text(&shown), "{\"n\": [1, 2]}\n");
    assert_eq!(shown.details.unwrap()["jsonOutputs"], json!([{"n": [1, 2]}]));
    let markdown = "class Note:\n    def _repr_markdown_(self): return '**bold**'\nNote()";
    assert_eq!(bench.text(markdown).await, "**bold**");
    let own = "class Own:\n    def __repr__(self): return 'own'\n    def _repr_html_(self): return '<b>html</b>'\nOwn()";
    assert_eq!(bench.text(own).await, "own");
}

#[tokio::test]
async fn figures_that_a_cell_leaves_open_are_shown() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    // The part of the interface of matplotlib that counts; the library itself need not be there.
    let folder = bench.dir.path().join("matplotlib");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("__init__.py"), "").unwrap();
    let module = format!(
        "figures = {{}}\nclass Figure:\n    def savefig(self, out, format, bbox_inches): out.write({PNG})\n    def get_axes(self): return []\n\
         def plot(*_): figures[1] = Figure()\ndef get_fignums(): return list(figures)\ndef figure(n): return figures[n]\n\
         def close(which): figures.clear()\n"
    );
    fs::write(folder.join("pyplot.py"), module).unwrap();
    let shown = bench
        .run("import os, matplotlib.pyplot as plt\nplt.plot([1, 2]); print(os.environ['MPLBACKEND'])")
        .await;
    assert_eq!((text(&shown), shown.content.len()), ("Agg\n", 2), "{shown:?}");
    assert_eq!(bench.run("1").await.content.len(), 1, "it is closed");
}

#[tokio::test]
async fn magics_are_taken_where_the_code_is_no_python() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    assert_eq!(bench.text("!echo one; echo two").await, "one\ntwo");
    assert_eq!(bench.text("lines = !echo one; echo two\nlines").await, "['one', 'two']");
    assert_eq!(bench.text("%cd /\nimport os\nos.getcwd()").await, "/\n'/'");
    assert_eq!(bench.text("%env NAME=value\n%env NAME").await, "value");
    assert_eq!(bench.text("!echo $NAME").await, "value");
    let failed = bench.run("%%bash\necho from bash\nexit 3").await;
    assert!(
        text(&failed).starts_with("from bash\n") && text(&failed).ends_with("code 3"),
        "{}",
        text(&failed)
    );
    let timed = bench.text("%time sum(range(10))").await;
    assert!(timed.starts_with("45\nCPU time: "), "{timed}");
    assert_eq!(bench.text("text = '''\n!echo no\n%cd no\n'''\nlen(text)").await, "17");
    fs::write(bench.dir.path().join("job.py"), "import sys\nmade = sys.argv[1:]\n").unwrap();
    let path = bench.dir.path().join("job.py");
    assert_eq!(bench.text(&format!("%run {} a b\nmade", path.display())).await, "['a', 'b']");
}

#[tokio::test]
async fn the_environment_has_no_keys() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    let seen = bench
        .text("import os\n[name in os.environ for name in ('PATH', 'HOME', 'PI_SESSION_ID', 'SOME_API_KEY')]")
        .await;
    assert_eq!(seen, "[True, True, True, False]");
    let passed = Bench::with(Language::Python, |options| options.passed = vec!["SOME_*".into()]).unwrap();
    assert_eq!(passed.text("import os; os.environ['SOME_API_KEY']").await, "'secret'");
}

#[tokio::test]
async fn modules_of_the_folder_can_be_imported_and_hide_nothing_of_the_runner() {
    let Some(bench) = Bench::new(Language::Python) else { return };
    fs::write(bench.dir.path().join("json.py"), "raise SystemExit('the wrong module')").unwrap();
    fs::write(bench.dir.path().join("mine.py"), "value = 5").unwrap();
    assert_eq!(bench.text("import mine; mine.value").await, "5");
}
