"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["system", "light", "dark"];
  // What opens a file may keep nothing; then the choice is for this time.
  const kept = {
    read() { try { return localStorage.getItem("agentd-theme"); } catch { return null; } },
    write(theme) { try { localStorage.setItem("agentd-theme", theme); } catch { /* for this time only */ } },
  };
  let theme = themes.includes(kept.read()) ? kept.read() : "system";
  const showTheme = () => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
  };
  // Before anything is drawn.
  root.classList.add("js");
  showTheme();

  document.addEventListener("DOMContentLoaded", () => {
    const by = (id) => document.getElementById(id);

    // Light and dark.
    const themeButton = by("theme");
    const nameTheme = () => { themeButton.textContent = "Theme: " + theme; };
    nameTheme();
    themeButton.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      kept.write(theme);
      showTheme();
      nameTheme();
    });

    // Folding. Only what is shown: a long session has thousands elsewhere.
    const unfold = by("unfold");
    unfold.addEventListener("click", () => {
      const open = unfold.getAttribute("aria-pressed") !== "true";
      unfold.setAttribute("aria-pressed", String(open));
      unfold.textContent = open ? "Fold all" : "Unfold all";
      for (const details of document.querySelectorAll(".piece.shown details")) details.open = open;
    });

    // Branches: a piece is shown with everything that leads to it and what goes on from it.
    const pieces = document.getElementsByClassName("piece");
    const number = (piece, name) => piece.hasAttribute(name) ? Number(piece.getAttribute(name)) : null;
    const showPath = (piece) => {
      if (piece.classList.contains("shown")) return;
      const path = new Set();
      for (let at = Number(piece.id.slice(1)); at !== null; at = number(pieces[at], "data-parent")) path.add(at);
      for (let at = number(piece, "data-next"); at !== null; at = number(pieces[at], "data-next")) path.add(at);
      for (const other of [...document.querySelectorAll(".piece.shown")]) other.classList.remove("shown");
      for (const at of path) pieces[at].classList.add("shown");
      for (const link of document.querySelectorAll(".branches [aria-current]")) link.removeAttribute("aria-current");
      for (const link of document.querySelectorAll(".branches a")) {
        if (path.has(Number(link.hash.slice(2)))) link.setAttribute("aria-current", "true");
      }
    };
    const reveal = (node) => {
      const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
      const piece = element.closest(".piece");
      if (piece) showPath(piece);
      for (let at = element.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
    };
    const follow = () => {
      const target = location.hash.length > 1 && by(location.hash.slice(1));
      if (!target) return;
      reveal(target);
      target.scrollIntoView();
    };
    window.addEventListener("hashchange", follow);
    // The link to where one is already changes no hash.
    document.addEventListener("click", (event) => {
      const link = event.target.closest && event.target.closest("a[href^='#']");
      if (link && link.hash === location.hash) { event.preventDefault(); follow(); }
    });
    follow();

    // Search: text across elements of a line counts as one, and that of different blocks does not.
    const query = by("query"), count = by("count"), previous = by("previous"), next = by("next");
    const blocks = "main,p,pre,li,td,th,dd,dt,h1,h2,h3,h4,h5,h6,summary,article,details,div,section,nav,header,blockquote";
    const most = 100000, marked = 2000;
    const canMark = typeof Highlight === "function" && CSS.highlights;
    let matches = [], here = -1, timer = 0;

    const lower = (text) => {
      const all = text.toLowerCase();
      // A few letters are longer in lower case; then places would be off.
      return all.length === text.length ? all
        : Array.from(text, (one) => one.toLowerCase().length === one.length ? one.toLowerCase() : one).join("");
    };
    const find = (wanted) => {
      const found = [];
      const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
      let nodes = [], starts = [], text = "", block = null;
      const search = () => {
        const all = lower(text);
        for (let at = all.indexOf(wanted); at >= 0 && found.length < most; at = all.indexOf(wanted, at + wanted.length)) {
          let low = 0, high = starts.length - 1;
          const place = (offset) => {
            low = 0; high = starts.length - 1;
            while (low < high) {
              const middle = (low + high + 1) >> 1;
              if (starts[middle] <= offset) low = middle; else high = middle - 1;
            }
            return [nodes[low], offset - starts[low]];
          };
          const [from, fromAt] = place(at);
          const [to, toAt] = place(at + wanted.length - 1);
          found.push([from, fromAt, to, toAt + 1]);
        }
        nodes = []; starts = []; text = "";
      };
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const own = node.parentElement.closest(blocks);
        // What only readers without the script see.
        if (own.matches(".others, .origin")) continue;
        if (own !== block) { search(); block = own; }
        nodes.push(node); starts.push(text.length); text += node.data;
      }
      search();
      return found;
    };
    const range = ([from, fromAt, to, toAt]) => {
      const range = new Range();
      range.setStart(from, fromAt);
      range.setEnd(to, toAt);
      return range;
    };
    const tell = () => {
      const all = matches.length === most ? most + "+" : String(matches.length);
      count.textContent = !query.value ? "" : matches.length ? (here + 1) + " of " + all : "none";
      previous.disabled = next.disabled = !matches.length;
    };
    const go = (to) => {
      if (!matches.length) return;
      here = (to + matches.length) % matches.length;
      const match = matches[here];
      reveal(match[0]);
      const at = range(match);
      if (canMark) {
        const first = Math.max(0, Math.min(here - marked / 2, matches.length - marked));
        CSS.highlights.set("found", new Highlight(...matches.slice(first, first + marked).map(range)));
        CSS.highlights.set("here", new Highlight(at));
      } else if (document.activeElement !== query) {
        const selection = getSelection();
        selection.removeAllRanges();
        selection.addRange(at);
      }
      match[0].parentElement.scrollIntoView({ block: "nearest" });
      const box = at.getBoundingClientRect();
      if (box.top < 80 || box.bottom > innerHeight - 20) scrollBy(0, box.top - innerHeight / 3);
      tell();
    };
    const search = () => {
      const wanted = lower(query.value);
      matches = wanted ? find(wanted) : [];
      here = -1;
      if (canMark) { CSS.highlights.delete("found"); CSS.highlights.delete("here"); }
      // The first match on what is shown comes first, so that typing does not change the branch needlessly.
      const first = matches.findIndex(([node]) => !node.parentElement.closest(".piece:not(.shown)"));
      if (matches.length) go(Math.max(first, 0)); else tell();
    };
    const soon = () => { clearTimeout(timer); timer = setTimeout(() => { timer = 0; search(); }, 150); };
    query.addEventListener("input", soon);
    query.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { query.value = ""; search(); }
      if (event.key !== "Enter") return;
      event.preventDefault();
      if (timer) { clearTimeout(timer); timer = 0; search(); } else go(here + (event.shiftKey ? -1 : 1));
    });
    previous.addEventListener("click", () => go(here - 1));
    next.addEventListener("click", () => go(here + 1));
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && document.activeElement !== query) {
        event.preventDefault();
        query.focus();
        query.select();
      }
    });
  });
})();
