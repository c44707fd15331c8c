"use strict";
// A figure holds its numbers once, as JSON: the names of the columns, then the rows.
const numbers = (figure) => JSON.parse(figure.querySelector("script").textContent);
const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const files = {
  csv: (figure) => numbers(figure).map((row) => row.map((value) => quoted(String(value ?? ""))).join(",") + "\r\n").join(""),
  svg: (figure) => '<?xml version="1.0" encoding="utf-8"?>\n' + new XMLSerializer().serializeToString(figure.querySelector("svg")),
};
const types = { csv: "text/csv", svg: "image/svg+xml" };

document.addEventListener("click", ({ target }) => {
  const kind = target.dataset.save;
  if (!kind) return;
  const figure = target.closest("figure"), link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([files[kind](figure)], { type: types[kind] }));
  link.download = `${figure.id}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});

function shown(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return value ?? "–";
  return (Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(4)))).replace("-", "−");
}

if (matchMedia("(max-width: 560px)").matches) {
  for (const drawing of document.querySelectorAll(".drawing")) drawing.tabIndex = 0; // it scrolls
}

const ROWS = 25;
for (const details of document.querySelectorAll("figure details")) {
  details.addEventListener("toggle", () => {
    const figure = details.closest("figure"), [names, ...rows] = numbers(figure), table = document.createElement("table");
    table.setAttribute("aria-label", `${figure.querySelector("h3").textContent}: numbers`);
    const head = table.createTHead().insertRow();
    for (const name of names) {
      const cell = head.appendChild(document.createElement("th"));
      [cell.scope, cell.textContent] = ["col", name];
    }
    const body = table.createTBody();
    for (const row of rows.slice(0, ROWS)) {
      const line = body.insertRow();
      for (const value of row) {
        const cell = line.insertCell();
        [cell.textContent, cell.className] = [shown(value), typeof value === "number" ? "figure" : ""];
      }
    }
    const around = details.appendChild(document.createElement("div"));
    [around.className, around.tabIndex] = ["scroll", 0];
    around.append(table);
    if (rows.length > ROWS) details.append(`${(rows.length - ROWS).toLocaleString("en")} more rows in the CSV.`);
  }, { once: true });
}
