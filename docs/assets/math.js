// KaTeX typesets what arithmatex marked; both are in this folder.
document$.subscribe(function (page) {
  renderMathInElement(page.body, {
    delimiters: [
      { left: "\\(", right: "\\)", display: false },
      { left: "\\[", right: "\\]", display: true },
    ],
    throwOnError: true,
  });
});
