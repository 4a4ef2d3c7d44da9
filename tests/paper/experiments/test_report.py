"""The report: complete, escaped, without requests, and alive in a real browser."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ccmac.cli.main import main
from ccmac.paper.experiments.records import write_record
from ccmac.paper.experiments.report import write_report
from paper.experiments.toy import fabricate

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PROBE = """
<script>
window.problems = [];
window.addEventListener("error", (e) => problems.push(String(e.message)));
document.addEventListener(
  "securitypolicyviolation", (e) => problems.push("policy " + e.blockedURI));
</script>
"""
ACTIONS = """
<script>
(() => {
  const by = (id) => document.getElementById(id);
  const svg = document.querySelector("#chart svg");
  const curves = () => [...svg.querySelectorAll(".curve")].map((n) => n.getAttribute("points"));
  const fire = (kind, x, y) => {
    const box = svg.getBoundingClientRect();
    const at = {clientX: box.left + x, clientY: box.top + y, bubbles: true};
    svg.dispatchEvent(new PointerEvent(kind, at));
  };
  const change = (id, value) => {
    by(id).value = value; by(id).dispatchEvent(new Event("change"));
  };
  const seen = {curves: curves().length, axes: {}, rows: by("table").tBodies[0].rows.length};
  for (const option of [...by("axis").options]) {
    change("axis", option.value);
    seen.axes[option.value] = [...svg.querySelectorAll("text")].map((n) => n.textContent);
  }
  change("axis", "rounds");
  const whole = curves();
  const [x, y] = whole[0].split(" ")[10].split(",").map(Number);
  fire("pointermove", x, y);
  seen.tip = by("tip").hidden ? null : by("tip").innerText;
  fire("pointerdown", 120, 60); fire("pointermove", 300, 200); fire("pointerup", 300, 200);
  seen.zoomed = curves()[0] !== whole[0];
  by("reset").click();
  seen.restored = curves()[0] === whole[0];
  by("logx").checked = true; by("logx").dispatchEvent(new Event("change"));
  seen.logarithmic = curves()[0] !== whole[0];
  by("logx").checked = false; by("logx").dispatchEvent(new Event("change"));
  by("legend").querySelector("button").click();
  seen.hidden = curves().length;
  by("legend").querySelector("button").click();
  const column = (k) => [...by("table").tBodies[0].rows].map((r) => r.cells[k].textContent);
  const heads = [...by("table").tHead.rows[0].cells].map((c) => c.textContent);
  const k = heads.indexOf("affine");
  by("table").tHead.rows[0].cells[k].click(); seen.up = column(k);
  by("table").tHead.rows[0].cells[k].click(); seen.down = column(k);
  by("filter").value = "second failed"; by("filter").dispatchEvent(new Event("input"));
  seen.filtered = column(0);
  seen.link = by("table").tBodies[0].querySelector("a").getAttribute("href");
  seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  seen.background = getComputedStyle(document.body).backgroundColor;
  by("theme").click();
  seen.switched = getComputedStyle(document.body).backgroundColor;
  seen.problems = window.problems;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
</script>
"""


@pytest.fixture(scope="module")
def suite_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    records = fabricate(
        folder,
        lambda c, k, _: (round(100 * c), round(99 * c * math.sqrt(k))),
        chis=(1.5, 2.0, 3.0, 5.0),
        kappas={"a": 4.0, "b": 9.0},
    )
    failed = {"status": "failed", "message": "</script><img src=x onerror=alert(1)> & 'more'"}
    write_record(folder, records[-1].run, failed, "")
    return folder


def test_the_page_is_complete_escaped_and_asks_for_nothing(suite_folder: Path) -> None:
    out = suite_folder / "report.html"
    assert main(["report", str(suite_folder), "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "Fabricated &lt;records&gt; &amp; co" in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert "default-src 'none'" in text
    block = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert block is not None
    content = json.loads(block[1])
    assert len(content["runs"]) == 16
    assert content["runs"][-1]["message"].startswith("</script>")
    assert content["records"] == "runs"
    assert "failed: &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; &amp;" in text
    assert "1.000<small> [1.000, 1.000]</small>" in text


def test_a_missing_suite_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "holds no suite.json" in capsys.readouterr().err


def browser() -> str:
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed")


def look(page: Path, profile: Path, width: int, scheme: int) -> dict[str, object]:
    """What the page says after the actions, in a browser of the given width (0 dark, 1 light)."""
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        f"--user-data-dir={profile}",
        f"--window-size={width},900",
        f"--blink-settings=preferredColorScheme={scheme}",
        "--virtual-time-budget=4000",
        "--dump-dom",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
    assert found is not None, done.stderr[-2000:]
    seen: dict[str, object] = json.loads(html.unescape(found[1]))
    return seen


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(1280, 1), (500, 0)])
def test_the_page_lives(suite_folder: Path, tmp_path: Path, width: int, scheme: int) -> None:
    browser()
    out = suite_folder / f"live-{width}.html"
    write_report(suite_folder, out)
    text = out.read_text(encoding="utf-8")
    out.write_text(
        text.replace("<title>", PROBE + "<title>", 1).replace("</body>", ACTIONS + "</body>"),
        encoding="utf-8",
    )
    seen = look(out, tmp_path / "profile", width, scheme)
    assert seen["problems"] == []
    assert seen["rows"] == 16
    assert seen["curves"] == 8
    axes = seen["axes"]
    assert isinstance(axes, dict)
    assert set(axes) == {"gradients", "products", "rounds", "bytes", "seconds"}
    assert any("neighbor rounds" in text for text in axes["rounds"])
    assert any("seconds" in text for text in axes["seconds"])
    assert "error" in str(seen["tip"])
    assert "cross-apapc" in str(seen["tip"])
    assert seen["zoomed"]
    assert seen["restored"]
    assert seen["logarithmic"]
    assert seen["hidden"] == 6
    assert seen["up"] == [str(k) for k in (150,) * 4 + (200,) * 4 + (300,) * 4 + (500,) * 3] + ["–"]
    assert seen["down"] == [str(k) for k in (500,) * 3 + (300,) * 4 + (200,) * 4 + (150,) * 4] + [
        "–"
    ]
    assert seen["filtered"] == ["second"]
    assert str(seen["link"]).startswith("runs/second-n8-erdos-renyi-1-cross-apapc-")
    assert seen["overflow"] == 0
    light = "rgb(251, 251, 250)"
    dark = "rgb(20, 23, 26)"
    assert (seen["background"], seen["switched"]) == ((light, dark) if scheme else (dark, light))
