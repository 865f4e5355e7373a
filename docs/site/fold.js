// A solution of the course unfolds: its cell, with what it shows, is behind a line to click.
for (const cell of document.querySelectorAll(".celltag_solution")) {
  const details = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "A solution, and what it shows";
  cell.before(details);
  details.append(summary, cell);
}
