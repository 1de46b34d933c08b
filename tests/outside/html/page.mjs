// What a reader does with an exported page, done in Chromium. Argument: a folder for files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { hostile, long, ordinary } from "./session.mjs";

const work = process.argv[2];
const shots = process.env.SHOTS;
const agentd = join(process.env.AGENTD_BIN_DIR, "agentd");
const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** Exports a session and returns the address of its page. */
function exported(name, make, ...more) {
  const session = join(work, `${name}.jsonl`), page = join(work, `${name}.html`);
  make(session, ...more);
  const said = execFileSync(agentd, ["--export", session, page], { encoding: "utf8" });
  assert.equal(said, `Exported to: ${page}\n`);
  return pathToFileURL(page).href;
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: flags });

/** Opens a page, does something with it, and makes sure that nothing else happened. */
async function visit(address, does, { width = 1200, height = 900, scheme = "light", script = true } = {}) {
  const context = await browser.newContext({ javaScriptEnabled: script, colorScheme: scheme, viewport: { width, height } });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const noise = [];
  page.on("console", (message) => noise.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => noise.push(`error: ${error}`));
  page.on("dialog", (dialog) => { noise.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (request.url().split("#")[0] !== address.split("#")[0] && !request.url().startsWith("data:")) noise.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(address);
    await does(page);
  } catch (error) {
    error.stack += noise.map((line) => `\n    ${line}`).join("");
    throw error;
  } finally {
    await context.close();
  }
  assert.deepEqual(noise, []);
}

// What a click leads to comes with an event of its own, a moment later.
const appears = (page, text) => page.getByText(text).first().waitFor({ state: "visible" });
const visible = (page, text) => page.getByText(text).first().isVisible();
const shot = async (page, name, fullPage = false) => { if (shots) await page.screenshot({ path: join(shots, `${name}.png`), fullPage }); };
const noSideways = async (page) => {
  const [inside, wide] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
  assert.ok(wide <= inside, `the page is ${wide} wide in a window of ${inside}`);
};
const ground = (page) => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]);

const tests = {
  async "the current path is shown, with titles and sums"(address) {
    await visit(address, async (page) => {
      assert.equal(await page.title(), "Forecast shows yesterday");
      assert.equal(await page.locator("h1").innerText(), "Forecast shows yesterday");
      assert.ok(await visible(page, "I checked the page at 00:30"));
      assert.ok(await visible(page, "Usage of all branches"));
      assert.ok(!await visible(page, "A zebra crossed here"));
      assert.ok(await page.locator("img").evaluate((image) => image.complete && image.naturalWidth === 5));
      await shot(page, "desktop-light");
      await shot(page, "desktop-light-whole", true);
    });
  },

  async "tool calls are folded and unfold"(address) {
    await visit(address, async (page) => {
      const edit = page.locator("details.tool", { has: page.locator(".diff") });
      assert.ok(!await edit.locator(".came").isVisible());
      await edit.locator("summary").first().click();
      assert.ok(await edit.locator(".came").isVisible());
      assert.match(await edit.locator(".came").innerText(), /^\+ 47/);
      assert.equal(await page.locator(".piece.shown details.failed").count(), 1);
      await page.locator("#unfold").click();
      assert.equal(await page.locator(".piece.shown details:not([open])").count(), 0);
      await shot(page, "desktop-unfolded", true);
      await page.locator("#unfold").click();
      assert.equal(await page.locator(".piece.shown details[open]").count(), 0);
    });
  },

  async "branches are reached and left without a reload"(address) {
    await visit(address, async (page) => {
      await page.evaluate(() => { window.stays = true; });
      const branches = page.locator("nav.branches").first();
      assert.equal(await branches.locator("[aria-current]").count(), 1);
      await branches.locator("a:not([aria-current])").click();
      await appears(page, "A zebra crossed here");
      assert.ok(!await visible(page, "I checked the page at 00:30"));
      assert.ok(await visible(page, "Can you find out why"), "what both branches begin with");
      assert.equal(await branches.locator("[aria-current]").count(), 1);
      await branches.locator("a:not([aria-current])").click();
      await appears(page, "I checked the page at 00:30");
      assert.ok(!await visible(page, "A zebra crossed here"));
      await page.goBack();
      await appears(page, "A zebra crossed here");
      assert.ok(await page.evaluate(() => window.stays), "no reload");
    });
    // An address of an entry of another branch leads there.
    await visit(address, async (page) => {
      const id = await page.evaluate(() => [...document.querySelectorAll("article")].find((one) => one.textContent.includes("zebra")).id);
      await page.goto(`${address}#${id}`);
      await page.reload();
      await appears(page, "A zebra crossed here");
    });
  },

  async "search finds text of all branches, and folded text"(address) {
    await visit(address, async (page) => {
      await page.keyboard.press("/");
      await page.keyboard.type("ZEBRA crossed");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator("#count").innerText(), "1 of 1");
      assert.ok(await visible(page, "A zebra crossed here"));
      await page.fill("#query", "localday");
      await page.keyboard.press("Enter");
      assert.match(await page.locator("#count").innerText(), /^1 of \d+$/);
      const all = Number((await page.locator("#count").innerText()).split(" ")[2]);
      const own = await page.evaluate(() => document.querySelector("main").textContent.toLowerCase().split("localday").length - 1);
      assert.equal(all, own);
      for (let at = 1; at < all; at++) await page.locator("#next").click();
      assert.equal(await page.locator("#count").innerText(), `${all} of ${all}`);
      await page.locator("#next").click();
      assert.equal(await page.locator("#count").innerText(), `1 of ${all}`, "after the last comes the first");
      await page.locator("#previous").click();
      assert.equal(await page.locator("#count").innerText(), `${all} of ${all}`);
      const inView = await page.evaluate(() => {
        const [range] = CSS.highlights.get("here");
        const box = range.getBoundingClientRect();
        return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight;
      });
      assert.ok(inView, "the match is in view");
      await page.fill("#query", "uses the station's time zone");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator("#count").innerText(), "1 of 1", "across elements of a line");
      await shot(page, "search");
      await page.fill("#query", "no such words");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator("#count").innerText(), "none");
      await page.keyboard.press("Escape");
      assert.equal(await page.locator("#count").innerText(), "");
    });
  },

  async "light and dark follow the system, and the switch"(address) {
    let light, dark;
    await visit(address, async (page) => { light = await ground(page); }, { scheme: "light" });
    await visit(address, async (page) => {
      dark = await ground(page);
      assert.notDeepEqual(light, dark);
      await shot(page, "desktop-dark");
      await page.locator("#theme").click();
      assert.deepEqual(await ground(page), light, "light although the system is dark");
      await page.locator("#theme").click();
      assert.deepEqual(await ground(page), dark);
      await page.locator("#theme").click();
      assert.match(await page.locator("#theme").innerText(), /system/);
    }, { scheme: "dark" });
  },

  async "a phone shows it without scrolling sideways"(address) {
    for (const scheme of ["light", "dark"]) {
      await visit(address, async (page) => {
        await noSideways(page);
        await shot(page, `phone-${scheme}`);
        await page.locator("#unfold").click();
        await noSideways(page);
        await shot(page, `phone-${scheme}-unfolded`, true);
      }, { width: 390, height: 844, scheme });
    }
  },

  async "without scripts everything is there"(address) {
    await visit(address, async (page) => {
      assert.ok(await visible(page, "I checked the page at 00:30"));
      assert.ok(await visible(page, "Other branches"));
      assert.ok(await visible(page, "A zebra crossed here"));
      assert.ok(!await page.locator("#query").isVisible());
      const all = await page.locator("main").textContent();
      const places = ["at 00:30", "Other branches", "A zebra crossed"].map((one) => all.indexOf(one));
      assert.deepEqual(places, places.toSorted((one, two) => one - two));
      await shot(page, "no-script", true);
    }, { script: false });
  },

  async "nothing in a transcript does anything"() {
    const address = exported("hostile", hostile);
    for (const width of [1200, 390]) {
      await visit(address, async (page) => {
        await page.locator("#unfold").click();
        for (const link of await page.locator("nav.branches a").all()) await link.click();
        await page.locator("#unfold").click();
        await page.fill("#query", "</script><script>");
        await page.keyboard.press("Enter");
        assert.match(await page.locator("#count").innerText(), /^\d+ of \d\d+$/);
        assert.equal(await page.evaluate(() => window.pwned), undefined);
        assert.deepEqual(await page.evaluate(() => [document.scripts.length, document.querySelectorAll("iframe,link,svg,object,embed,form,base").length,
          document.querySelectorAll("style").length, document.images.length]), [1, 0, 1, 0]);
        await noSideways(page);
        await shot(page, `hostile-${width}`);
      }, { width });
    }
  },

  async "a long session can be used"() {
    const address = exported("long", long, 12_000, 10);
    await visit(address, async (page) => {
      await page.fill("#query", "needle");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator("#count").innerText(), "1 of 1");
      await page.fill("#query", "part 1196 is fine");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator("#count").innerText(), "1 of 10");
      await page.locator("#next").click();
      assert.ok(await page.locator(".piece.shown", { hasText: "Part 1196 is fine" }).isVisible());
    });
  },
};

let failed = 0;
const address = exported("ordinary", ordinary);
for (const [name, test] of Object.entries(tests)) {
  try {
    await test(address);
    console.log(`ok      ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
await browser.close();
process.exitCode = failed ? 1 : 0;
