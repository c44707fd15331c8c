const claims = [...document.querySelectorAll(".claims tbody tr")];
const sections = [...document.querySelectorAll("section.experiment")];
const links = [...document.querySelectorAll(".index a")];
const [paper, outcome, text] = ["paper", "outcome", "text"].map((name) => document.getElementById("filter-" + name));

function filter() {
  const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = new Set();
  let count = 0;
  for (const row of claims) {
    const fits =
      (!paper.value || row.dataset.paper === paper.value) &&
      (!outcome.value || row.dataset.outcome === outcome.value) &&
      words.every((word) => row.textContent.toLowerCase().includes(word));
    row.hidden = !fits;
    document.getElementById(row.dataset.claim).hidden = !fits;
    if (fits) {
      count += 1;
      shown.add(row.querySelector("a").hash.slice(1));
    }
  }
  const all = count === claims.length;
  for (const section of sections) section.hidden = !all && !shown.has(section.id);
  for (const link of links) link.parentElement.hidden = !all && !shown.has(link.hash.slice(1));
  document.getElementById("filter-count").textContent = all ? `${count} claim${count === 1 ? "" : "s"}` : `${count} of ${claims.length} claims`;
}

for (const control of [paper, outcome, text]) control.addEventListener("input", filter);
filter();
