// Sets every formula that docs/_extensions/mathematics.py has left as TeX. A formula that KaTeX cannot read
// stays in red as it was written; a test looks for those.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".math[data-tex]")) {
    katex.render(formula.dataset.tex, formula, {
      displayMode: formula.tagName === "DIV",
      throwOnError: false,
    });
  }
});
