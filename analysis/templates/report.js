// Sorts, folds and searches tables. Without it everything is shown, in the order in which it was written.
(function () {
  "use strict";
  document.documentElement.classList.add("scripted");

  const SHOWN = 200; // rows of a group until more are asked for: thousands take seconds to lay out
  const SEARCHED = 30; // a table of more rows than these has a box to search in
  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const words = new Intl.Collator("en", { numeric: true });

  function made(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  // "1,234.5", "−0.3", "1.2·10⁻⁵", "∞": as `format_number` writes them; NaN for all else.
  function numberOf(text) {
    const plain = text.replace(/,/g, "").replace(/−/g, "-").trim();
    const power = plain.match(/^(-?[\d.]+)·10(⁻?)([⁰¹²³⁴-⁹]+)$/);
    if (power) {
      const digits = [...power[3]].map((c) => SUPERSCRIPTS.indexOf(c)).join("");
      return Number(power[1] + "e" + (power[2] ? "-" : "") + digits);
    }
    if (/^-?∞$/.test(plain)) return plain === "∞" ? Infinity : -Infinity;
    return /^-?[\d.]+$/.test(plain) ? Number(plain) : NaN;
  }

  // A stable sort by one column; rows without a number stay last, whichever way round.
  function sorted(items, place, isNumber, sign) {
    const keyed = items.map((item) => {
      const cell = item.row.cells[place];
      const text = (isNumber && cell.firstChild ? cell.firstChild : cell).textContent;
      return { item, text, number: isNumber ? numberOf(text) : NaN };
    });
    keyed.sort((a, b) => {
      if (!isNumber) return sign * words.compare(a.text, b.text);
      const empty = Number.isNaN(a.number) - Number.isNaN(b.number);
      return empty || (a.number === b.number ? 0 : sign * (a.number < b.number ? -1 : 1));
    });
    return keyed.map((each) => each.item);
  }

  // Emptied at once, since Chromium may take a millisecond for each row that is taken out by itself.
  function refill(body, rows) {
    body.replaceChildren();
    body.append(...rows);
  }

  // The rows that fold under one row: shows those that match what is searched for, the first of them at once.
  function fold(body) {
    const entries = body.nextElementSibling;
    const rows = [...entries.rows];
    const heading = body.rows[0];
    const group = { row: heading, body, entries, rows, sort() {}, search() {} };
    if (!rows.length) return group;
    let open = !entries.classList.contains("folded");
    let whole = false;
    let order = rows;
    let searched = "";
    const button = made("button", { type: "button", className: "fold" }, ...heading.cells[0].childNodes);
    const more = made("button", { type: "button" });
    const moreRow = made("tr", { className: "more" }, made("td", { colSpan: heading.cells.length }, more));

    function show() {
      const fits = (row) => row.cells[0].textContent.toLowerCase().includes(searched);
      const found = searched ? order.filter(fits) : order;
      const shown = new Set(whole ? found : found.slice(0, SHOWN));
      for (const row of rows) row.hidden = !shown.has(row);
      more.textContent = `… and ${found.length - shown.size} more: show them too`;
      moreRow.hidden = found.length === shown.size;
      body.hidden = Boolean(searched) && !found.length;
      const unfolded = open || Boolean(searched && found.length);
      entries.classList.toggle("folded", !unfolded);
      button.setAttribute("aria-expanded", String(unfolded));
    }
    group.sort = (sort) => {
      order = sort(rows);
      refill(entries, [...order, moreRow]);
      show();
    };
    group.search = (text) => {
      searched = text;
      show();
    };
    button.addEventListener("click", () => {
      open = entries.classList.contains("folded");
      show();
    });
    more.addEventListener("click", () => {
      whole = true;
      show();
    });
    heading.cells[0].append(button);
    entries.append(moreRow);
    show();
    return group;
  }

  function sortable(table, groups) {
    const headings = [...table.tHead.rows[0].cells];
    const plain = [...table.tBodies].filter((body) => !body.className);
    const written = new Map(plain.map((body) => [body, [...body.rows]]));

    function sortBy(place, sign) {
      const isNumber = headings[place].classList.contains("number");
      const sort = (items) => (sign ? sorted(items, place, isNumber, sign) : items);
      const sortRows = (rows) => sort(rows.map((row) => ({ row }))).map((item) => item.row);
      for (const [body, rows] of written) refill(body, sortRows(rows));
      for (const group of groups) group.sort(sortRows);
      table.append(...sort(groups).flatMap((group) => [group.body, group.entries]));
    }

    headings.forEach((heading, place) => {
      const button = made("button", { type: "button" }, ...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const now = heading.getAttribute("aria-sort");
        const then = now ? { ascending: "descending" }[now] : "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        if (then) heading.setAttribute("aria-sort", then);
        sortBy(place, then ? (then === "ascending" ? 1 : -1) : 0);
      });
    });
  }

  function searchable(table, groups) {
    const label = `Search ${table.tHead.rows[0].cells[0].textContent.trim()}`;
    const box = made("input", { type: "search", placeholder: label, className: "search" });
    box.setAttribute("aria-label", label);
    const plain = [...table.tBodies].filter((body) => !body.className).flatMap((body) => [...body.rows]);
    box.addEventListener("input", () => {
      const text = box.value.trim().toLowerCase();
      for (const row of plain) row.hidden = !row.cells[0].textContent.toLowerCase().includes(text);
      for (const group of groups) group.search(text);
    });
    table.closest(".panel").prepend(box);
  }

  // Copied numbers are plain ones: a spreadsheet takes "3261" and "-0.3" for numbers.
  document.addEventListener("copy", (event) => {
    const text = String(getSelection());
    const plain = text
      .replace(/\[[^\]\n]*\]|(\d),(?=\d{3}(?!\d))/g, (found, digit) => digit ?? found)
      .replace(/−(?=[\d.])/g, "-");
    if (plain === text) return;
    event.clipboardData.setData("text/plain", plain);
    event.preventDefault();
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const picture of document.querySelectorAll("figure svg")) {
      picture.addEventListener("click", () => picture.closest("figure").classList.toggle("large"));
    }
    for (const table of document.querySelectorAll(".panel table")) {
      const rows = table.rows.length;
      const groups = [...table.querySelectorAll("tbody.group")].map(fold);
      if (rows > SEARCHED) searchable(table, groups);
      if (table.classList.contains("sortable")) sortable(table, groups);
    }
  });
})();
