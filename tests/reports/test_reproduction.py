import re
from html.parser import HTMLParser

from markupsafe import escape
from reproduced import HOSTILE, MEASURED, PAGE_PARTS

from sparsact.experiments import Outcome
from sparsact.reports.frame import rows
from sparsact.reports.reproduction import charts, render, write

PAGE = render(PAGE_PARTS, "sparsact reproduce --quick")


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


def test_every_claim_is_told_with_its_rule_and_its_command():
    for findings in PAGE_PARTS:
        assert findings.command in PAGE
        for claim, _ in findings.verdicts:
            assert str(escape(claim.rule)) in PAGE
    for outcome in Outcome:
        assert f'class="badge {outcome.value.replace(" ", "-")}"' in PAGE


def test_what_cannot_be_measured_says_what_it_lacks():
    assert "no data: fetch them." in PAGE


def test_names_are_escaped():
    assert HOSTILE not in PAGE
    assert PAGE.count("<script") == 1


def test_links_lead_somewhere_and_ids_are_unique():
    page = Ids(PAGE)
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.targets) <= set(page.ids)


def test_the_page_loads_nothing():
    assert not re.search(r'(src|href)="(?!#|data:)', PAGE.split("<main>")[1].replace("xlink:href", ""))


def test_the_same_rows_give_the_same_page(tmp_path):
    write(PAGE_PARTS, "sparsact reproduce --quick", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == PAGE


def test_a_frame_holds_the_medians_of_the_rows():
    frame = charts(MEASURED)[0].frame(MEASURED.rows)
    means = [row for row in rows(frame) if row[0] == "bucket means"]
    for _, n_buckets, share, low, high, n in means:
        group = MEASURED.rows.where(n_buckets=n_buckets)
        shares = sorted(row["mse"] / row["variance"] for row in group)
        assert shares[0] <= low <= share <= high <= shares[-1]
        assert n == len(group)
