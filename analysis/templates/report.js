// Sorts and folds tables. Without it everything is shown, in the order in which it was written.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted");

  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const words = new Intl.Collator("en", { numeric: true });

  // "1 234.5", "−0.3", "1.2·10⁻⁵", "∞": as `format_number` writes them; NaN for all else.
  function numberOf(text) {
    const plain = text.replace(/[\u202f,]/g, "").replace(/−/g, "-").trim();
    const power = plain.match(/^(-?[\d.]+)·10(⁻?)([⁰¹²³⁴-⁹]+)$/);
    if (power) {
      const digits = [...power[3]].map((c) => SUPERSCRIPTS.indexOf(c)).join("");
      return Number(power[1] + "e" + (power[2] ? "-" : "") + digits);
    }
    if (/^-?∞$/.test(plain)) return plain === "∞" ? Infinity : -Infinity;
    return plain === "" || !/^-?[\d.]+$/.test(plain) ? NaN : Number(plain);
  }

  const valueOf = (row, place) => (row.cells[place].firstChild || {}).textContent || "";

  // A stable sort: rows without a value last, whichever way round.
  function sorted(items, place, isNumber, sign) {
    const keyed = items.map((item) => {
      const text = valueOf(item.row, place);
      return { item, text, number: isNumber ? numberOf(text) : NaN };
    });
    keyed.sort((a, b) => {
      if (!isNumber) return sign * words.compare(a.text, b.text);
      const empty = Number.isNaN(a.number) - Number.isNaN(b.number);
      return empty || (a.number === b.number ? 0 : sign * (a.number < b.number ? -1 : 1));
    });
    return keyed.map((each) => each.item);
  }

  function sortable(table) {
    const headings = [...table.tHead.rows[0].cells];
    const bodies = [...table.tBodies];
    const written = new Map(bodies.map((body) => [body, [...body.rows]]));
    const groups = bodies
      .filter((body) => body.classList.contains("group"))
      .map((body) => ({ row: body.rows[0], body, entries: body.nextElementSibling }));

    function sortBy(place, sign) {
      const isNumber = headings[place].classList.contains("number");
      for (const [body, rows] of written) {
        if (rows.length < 2) continue;
        const items = rows.map((row) => ({ row }));
        body.append(...(sign ? sorted(items, place, isNumber, sign) : items).map((i) => i.row));
      }
      const order = sign ? sorted(groups, place, isNumber, sign) : groups;
      table.append(...order.flatMap((group) => [group.body, group.entries]));
    }

    headings.forEach((heading, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: null };
        const now = heading.getAttribute("aria-sort");
        const then = now in next ? next[now] : "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        if (then) heading.setAttribute("aria-sort", then);
        sortBy(place, then ? (then === "ascending" ? 1 : -1) : 0);
      });
    });
  }

  function foldable(body) {
    const entries = body.nextElementSibling;
    if (!entries.rows.length) return;
    const heading = body.rows[0].cells[0];
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    const show = (open) => {
      entries.classList.toggle("folded", !open);
      button.setAttribute("aria-expanded", String(open));
    };
    show(!entries.classList.contains("folded"));
    button.addEventListener("click", () => show(entries.classList.contains("folded")));
    button.append(...heading.childNodes);
    heading.append(button);
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("table.sortable").forEach(sortable);
    document.querySelectorAll("tbody.group").forEach(foldable);
  });
})();
