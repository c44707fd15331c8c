import re
from html.parser import HTMLParser

import pytest
from markupsafe import escape
from reproduced import HOSTILE, MEASURED, PAGE_PARTS

from sparsact.reports.figure import rows
from sparsact_papers.experiments import Correction, Outcome, Standing
from sparsact_papers.page import render, write

COMMAND = "sparsact reproduce --quick"


@pytest.fixture(scope="module")
def page():
    return render(PAGE_PARTS, COMMAND)


class Ids(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.targets = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if "id" in named:
            self.ids.append(named["id"])
        if tag == "a" and named.get("href", "").startswith("#"):
            self.targets.append(named["href"][1:])


def test_every_claim_is_told_with_its_rule_and_its_command(page):
    for findings in PAGE_PARTS:
        assert findings.command in page
        for claim, _ in findings.verdicts:
            assert str(escape(claim.rule)) in page
    for outcome in Outcome:
        assert f'class="badge {outcome.value.replace(" ", "-")}"' in page


def test_the_correction_is_told_with_every_verdict_that_it_concerns(page):
    correction = Correction.of(PAGE_PARTS)
    assert str(escape(correction.told)) in page
    table, claims = page.split('<table class="claims">')[1].split("</table>")[0], page.split("</table>", 1)[1]
    for standing in (Standing.SURVIVES, Standing.ALONE, Standing.EXACT):
        expected = sum(one is standing for one in correction.standings.values())
        assert table.count(f">{standing}</small>") == claims.count(f">{standing}</small>") == expected
    assert {Standing.EXACT, Standing.OPEN} < set(correction.standings.values())


def test_what_cannot_be_measured_says_what_it_lacks(page):
    assert "no data: fetch them." in page


def test_names_are_escaped(page):
    assert HOSTILE not in page
    assert page.count("<script") == 1 + page.count("<figure")


def test_links_lead_somewhere_and_ids_are_unique(page):
    found = Ids(page)
    assert len(set(found.ids)) == len(found.ids)
    assert set(found.targets) <= set(found.ids)


def test_the_page_loads_nothing(page):
    assert not re.search(r'(src|href)="(?!#)', page.split("<main")[1])


def test_the_same_rows_give_the_same_page(tmp_path):
    write(PAGE_PARTS[-2:], COMMAND, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == render(PAGE_PARTS[-2:], COMMAND)


def test_a_frame_holds_the_medians_of_the_rows():
    frame = MEASURED.experiment.charts[0].frame(MEASURED.rows)
    means = [row for row in rows(frame) if row[0] == "bucket means"]
    for _, n_buckets, share, low, high, n in means:
        group = MEASURED.rows.where(n_buckets=n_buckets)
        shares = sorted(row["mse"] / row["variance"] for row in group)
        assert shares[0] <= low <= share <= high <= shares[-1]
        assert n == len(group)
