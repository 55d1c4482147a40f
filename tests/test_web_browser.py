"""The page of a run in a real browser: what a person clicks, types and sees."""

from __future__ import annotations

import pytest

from agent.analysis.report.web import as_html
from agent.run.events import Added
from agent.run.journal import Journal
from benchmarks.reports.site import Site
from tests.browser import Visit, browser, screenshots
from tests.pages import batch, crowd, serving, state, told, write

pytestmark = pytest.mark.browser

SIZES = [(1440, 860), (1024, 768), (420, 800)]
CONTROLS = "button, input, select, summary, a[href], canvas[tabindex]"
FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, below) =>
    below.map((part, i) => (top[i] * top[3]) / 255 + part * (1 - top[3] / 255));
  const behind = (element) =>
    element === null
      ? [255, 255, 255]
      : over(rgba(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) =>
      part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (element) => {
    const { color, fill } = getComputedStyle(element);
    const below = behind(element);
    const ink = over(rgba(element.closest("svg") ? fill : color), below);
    const [dark, light] = [luminance(ink), luminance(below)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    const shown = element.checkVisibility() && !element.closest("script, noscript, .unseen");
    if (shown && texts.currentNode.data.trim() && contrast(element) < 4.5)
      found.push(`${texts.currentNode.data.trim()}: ${contrast(element).toFixed(2)}`);
  }
  return found;
}"""
"""The texts of a page whose contrast with what is behind them is below 4.5, as WCAG 2.2 computes it (level AA)."""
MANY = 5_000
HOUR_S = 3600


@pytest.fixture(scope="module")
def launched():
    with browser() as launched:
        yield launched


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, events in (("told", told()), ("crowd", crowd(MANY))):
        (folder / f"{name}.html").write_bytes(as_html(write(folder / name, events)))
    (folder / "batch.html").write_bytes(Site(batch(folder / "batch")).index())
    return folder


@pytest.fixture
def visit(launched, files):
    """Opens a page, and sees at the end that it asked for nothing but itself and complained of nothing."""
    opened = []

    def open_(name: str = "told", **how):
        url = (files / f"{name}.html").as_uri()
        opened.append(Visit(launched, url, **how))
        return opened[-1].page

    yield open_
    for each in opened:
        each.close()
        assert each.complaints == []
        assert {url.split("#")[0] for url in each.asked} == {each.asked[0].split("#")[0]}


def click_state(page, number):
    at = page.evaluate(f"ramify.drawing.where({number})")
    page.locator("#tree").click(position=at)
    page.locator(f"[data-state='{number}']").wait_for()


def heading(page):
    return page.locator(".panel h2").text_content()


def counted(page, found):
    page.locator("#count", has_text=found).wait_for()


def drawn(page, what):
    """What the canvas says of its last frame, once the frames that are due are drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
    return int(page.locator("#tree").get_attribute(f"data-{what}"))


def test_a_click_on_a_state_shows_all_there_is_to_know_of_it(visit):
    page = visit()
    assert heading(page) == "The run"
    click_state(page, 2)
    assert heading(page) == "State 20.500"
    assert "return a + 2" in page.locator(".diff .added").first.text_content()
    seen = {}
    for tab in ("Tests", "Why", "Messages", "Cost"):
        page.get_by_role("tab", name=tab).click()
        page.locator(
            f"[aria-labelledby=tab-{ {'Messages': 'turns'}.get(tab, tab.lower()) }][data-state='2']"
        ).wait_for()
        seen[tab] = page.locator("#tabpanel").text_content()
    assert "Fixed: 1" in seen["Tests"]
    assert "Selection 1: 0 was expanded and made state 1" in seen["Why"]
    assert "Selection 2: 1 was expanded and made state 2" in seen["Why"]
    assert "rival 0" in seen["Why"]
    assert "Other proposals that led here: 1" in seen["Why"]
    assert "I try 2." in seen["Messages"]
    assert "tokens in100" in seen["Cost"]


def test_a_state_without_an_edit_of_its_own_says_where_its_changes_come_from(visit):
    page = visit()
    click_state(page, 5)
    assert "a shell command may have changed files" in page.locator("#tabpanel").text_content()


def test_a_merged_state_shows_what_the_other_branch_adds(visit):
    page = visit()
    click_state(page, 4)
    assert page.locator("#tabpanel h3").first.text_content() == "Merged into state 3"
    added = page.locator(".diff .added").all_text_contents()
    assert [line.split("#")[0] for line in added if "return" in line] == ["+return a + 1  ", "+return a + 2  "]


def test_the_side_says_how_the_search_finished_and_what_the_goal_was(visit):
    page = visit()
    said = page.locator(".panel").text_content()
    assert "Search finished: solved: the goal tests pass and nothing broke. The patch is verified." in said
    assert "Goal teststest_a.py::test_sum" in said
    assert "search finished: solved" in page.locator(".moment").text_content()


def test_a_state_with_several_parents_says_in_words_how_it_came_to_them(visit):
    page = visit()
    ways = page.locator(".panel .ways")
    click_state(page, 4)
    assert ways.text_content() == "Two branches in one: git merged 3 and 2. "
    click_state(page, 2)
    assert ways.text_content() == "One state with several parents: 0 led here, too."
    ways.get_by_role("button", name="0").click()
    page.get_by_role("heading", name="State 0").wait_for()
    assert ways.count() == 0


def test_what_a_run_recorded_is_shown_as_text(visit):
    page = visit()
    click_state(page, 1)
    assert "</script><img src=x onerror=alert(1)>" in page.locator(".panel .label").text_content()
    assert page.locator("img").count() == 0


def test_the_slider_replays_the_search_event_by_event(visit):
    page = visit()
    assert drawn(page, "count") == 6
    slider = page.get_by_role("slider")
    slider.fill("4")
    assert drawn(page, "count") == 2
    assert "from 0: made state 1" in page.locator(".moment").text_content()
    assert "1,020 tokens · $0.25" in page.locator(".sums").text_content()
    slider.focus()
    slider.press("ArrowRight")
    assert drawn(page, "count") == 3
    slider.fill("0")
    assert drawn(page, "drawn") == 0
    page.get_by_role("button", name="Play the search").click()
    page.locator(".sums", has_text="event 15 of 15").wait_for()
    assert drawn(page, "count") == 6


def test_the_search_finds_states_and_goes_to_them(visit):
    page = visit()
    page.keyboard.press("/")
    page.keyboard.type("merge of")
    counted(page, "1 of 6")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="State 4").wait_for()
    page.locator("#search").fill("#3")
    page.locator("#found button").click()
    page.get_by_role("heading", name="State 3").wait_for()


def test_filters_narrow_what_is_found(visit):
    page = visit()
    page.get_by_text("Filter").click()
    page.get_by_label("better").check()
    counted(page, "2 of 6")
    assert page.evaluate("[...ramify.store.state.found]") == [1, 2]
    page.get_by_label("from").fill("0.4")
    counted(page, "1 of 6")
    page.get_by_role("button", name="Show all").click()
    page.get_by_label("shell").check()
    counted(page, "1 of 6")


def test_the_keyboard_walks_the_tree(visit):
    page = visit()
    page.locator("#tree").focus()
    status = page.locator("[role=status].unseen")
    walked = []
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowLeft", "b"):
        page.keyboard.press(key)
        drawn(page, "frames")
        walked.append(status.text_content().split(",")[0])
    assert walked == ["state 0", "state 1", "state 3", "state 0", "state 4"]
    page.locator(".panel [role=tab][aria-selected=true]").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.role == 'tab'")
    page.keyboard.press("ArrowRight")
    page.locator("[role=tab][aria-selected=true]", has_text="Tests").wait_for()
    page.wait_for_function("document.activeElement.id == 'tab-tests'")
    page.evaluate("document.querySelector('.panel').style.height = '200px'")
    page.locator("[role=tabpanel]").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('.panel').scrollTop > 0")
    assert heading(page).startswith("State 4"), "it scrolls, and walks nowhere"
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys and signs").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press(",")
    page.locator(".sums", has_text="event 14 of 15").wait_for()


def test_the_tournament_is_a_bracket_that_leads_to_its_states(visit):
    page = visit()
    page.get_by_role("button", name="The tournament").click()
    dialog = page.get_by_role("dialog", name="Tournament")
    assert dialog.get_by_role("button", name="state 4, 1 rule, goes on").is_visible()
    assert "61 % sure" in dialog.text_content()
    dialog.get_by_role("button", name="state 3, 2, goes on").click()
    page.get_by_role("heading", name="State 3").wait_for()
    for key in ("Enter", " "):
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        page.get_by_role("button", name="state 2, 1").focus()
        page.keyboard.press(key)
        page.get_by_role("heading", name="State 2").wait_for()


def test_it_is_dark_where_the_person_likes_it_dark_and_can_be_changed(visit, tmp_path):
    page = visit(dark=True)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    click_state(page, 4)
    page.screenshot(path=screenshots(tmp_path) / "tree-dark.png")
    page.get_by_role("button", name="Dark or light").click()
    drawn(page, "frames")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.screenshot(path=screenshots(tmp_path) / "tree-light.png")


def test_an_address_leads_to_a_state(visit):
    page = visit()
    click_state(page, 3)
    assert page.url.endswith("#3")
    page.goto(page.url.replace("#3", "#2"))
    page.get_by_role("heading", name="State 2").wait_for()


def test_of_five_thousand_states_it_draws_once_a_frame_and_only_what_is_in_sight(visit, files, tmp_path):
    assert (files / "crowd.html").stat().st_size < 4_000_000
    page = visit("crowd")
    assert drawn(page, "drawn") == MANY
    before = drawn(page, "frames")
    page.evaluate("for (let step = 0; step < 500; step++) ramify.store.set({ step })")
    page.evaluate("for (let i = 0; i < 200; i++) ramify.drawing.camera.by(i % 2 ? 1.1 : 1 / 1.1)")
    assert drawn(page, "frames") - before <= 6
    page.screenshot(path=screenshots(tmp_path) / "tree-5000.png")
    page.evaluate("ramify.navigation.select(4321)")
    page.locator("[data-state='4321']").wait_for()
    assert 0 < drawn(page, "drawn") < MANY / 10
    assert page.evaluate("document.querySelectorAll('body *').length") < 400


@pytest.fixture
def served(launched, tmp_path):
    """Opens a page of a served folder that follows what runs there, once an hour by a clock that the test turns."""
    opened = []
    with serving(tmp_path, refresh_s=HOUR_S) as port:

        def open_(path: str):
            opened.append(Visit(launched, f"http://127.0.0.1:{port}/{path}", clock=True))
            return opened[-1]

        yield open_
        for each in opened:
            each.close()
            assert each.complaints == []


def pass_an_hour(page):
    """The page that it is afterwards has come up."""
    with page.expect_event("load"):
        page.clock.fast_forward(1000 * HOUR_S)


def test_the_served_page_of_a_running_search_follows_it_while_nobody_reads_in_it(served, tmp_path):
    run = write(tmp_path / "run", told()[:4])
    visited = served("runs/run.html#1")
    page = visited.page
    assert heading(page).startswith("State 1")
    assert drawn(page, "count") == 2
    write(run, told()[:5])
    asked = len(visited.asked)
    page.clock.fast_forward(1000 * HOUR_S)
    drawn(page, "frames")
    assert len(visited.asked) == asked, "it would take away what is read"
    assert (
        page.locator(".toolbar > [role=status]").text_content() == "Updates are paused while you read, select or type."
    )
    page.evaluate("ramify.store.set({ selected: null })")
    drawn(page, "frames")
    pass_an_hour(page)
    assert drawn(page, "count") == 3
    write(run, told())
    pass_an_hour(page)
    assert drawn(page, "count") == 6
    assert page.evaluate("ramify.facts.refresh_s") is None, "it has ended"


def test_a_run_that_has_no_state_yet_is_followed_whatever_is_done_with_the_page(served, tmp_path):
    run = write(tmp_path / "run", told()[:1])
    page = served("runs/run.html").page
    page.mouse.move(500, 400)
    page.mouse.wheel(0, -400)
    assert drawn(page, "count") == 0
    write(run, told()[:2])
    pass_an_hour(page)
    assert drawn(page, "count") == 1


def test_a_refresh_keeps_how_the_tree_is_seen_though_it_has_grown(served, tmp_path):
    run = write(tmp_path / "run", told()[:5])
    page = served("runs/run.html").page
    write(run, told()[:-1])
    pass_an_hour(page)
    assert drawn(page, "count") == 6
    assert page.evaluate("ramify.drawing.view()") is None, "nobody moved it, so all of it is seen"
    page.locator("#tree").focus()
    page.keyboard.press("l")
    drawn(page, "frames")
    page.mouse.move(500, 400)
    page.mouse.wheel(0, -400)
    page.mouse.down()
    page.mouse.move(430, 330)
    page.mouse.up()
    drawn(page, "frames")
    seen = page.evaluate("ramify.drawing.view()")
    write(run, [*told()[:-1], *(Added(state(number, (0,), 0.3), float(number)) for number in range(6, 12))])
    pass_an_hour(page)
    assert drawn(page, "count") == 12
    assert page.evaluate("ramify.store.state.mode") == "rings"
    assert page.evaluate(f"ramify.drawing.where({seen['id']})") == pytest.approx(seen["at"])
    assert page.evaluate("ramify.drawing.camera.transform.k") == pytest.approx(seen["k"])
    assert page.evaluate("document.activeElement.id") == "tree"
    page.reload()
    assert page.evaluate("ramify.drawing.view()") is None, "a person who loads it again sees all of it"


def test_a_refresh_keeps_the_order_and_the_narrowing_of_the_table(served, tmp_path):
    batch(tmp_path / "batch")
    with Journal(write(tmp_path / "going_on", told()[:4])):  # as the process that makes the run has it
        page = served("").page
        page.locator("#unit").select_option("nodes")
        page.locator("#fit").select_option("solved")
        page.locator("#words").fill("pkg")
        for _ in range(2):
            page.get_by_role("button", name="test runs").click()
        pass_an_hour(page)
    assert page.locator("tbody th").all_text_contents() == ["pkg__one-3", "pkg__one-2", "pkg__one-1"]
    assert page.locator("th[aria-sort=descending]").text_content() == "test runs"
    assert [page.locator(f"#{field}").input_value() for field in ("unit", "fit", "words")] == ["nodes", "solved", "pkg"]
    assert page.get_by_text("states per instance").count() == 1
    assert page.evaluate("document.activeElement.id") == "sort-measurements"


def test_a_batch_is_a_table_that_sorts_and_narrows_beside_its_rate_and_curves(visit, tmp_path):
    page = visit("batch")
    assert "66.7 %" in page.locator(".rate").text_content()
    names = page.locator("tbody th")
    assert names.all_text_contents() == ["pkg__one-1", "pkg__one-2", "pkg__one-3"]
    heads = page.locator("thead th").all_text_contents()
    assert heads[heads.index("seconds") :] == ["seconds", "tokens", "dollars", "flagged", "why"]
    page.get_by_role("button", name="test runs").click()
    page.get_by_role("button", name="test runs").click()
    assert names.all_text_contents() == ["pkg__one-3", "pkg__one-2", "pkg__one-1"]
    assert page.locator("th[aria-sort=descending]").text_content() == "test runs"
    page.evaluate("ramify.facts.rows[0].measurements = null")
    for order in ("ascending", "descending"):
        page.get_by_role("button", name="test runs").click()
        page.locator(f"th[aria-sort={order}]").wait_for()
        assert names.last.text_content() == "pkg__one-1", "what is unknown comes last"
    page.locator("#fit").select_option("not resolved")
    assert page.locator("#rows").text_content() == "1 of 3"
    page.locator("#fit").select_option("all")
    page.locator("#words").fill("one-2")
    assert names.all_text_contents() == ["pkg__one-2"]
    page.locator("#words").fill("")
    assert page.get_by_role("link", name="pkg__one-1").get_attribute("href") == "runs/pkg__one-1.html"
    assert page.locator("figure h3").all_text_contents() == ["hidden tests"]
    assert page.locator(".curves circle").count() == 3
    page.locator("#unit").select_option("nodes")
    assert page.get_by_text("states per instance").count() == 1
    page.screenshot(path=screenshots(tmp_path) / "batch.png")


def test_words_beside_a_state_end_before_the_drawing_does(launched, tmp_path):
    label = "changed src/package/module.py: " + "the sign is right now, " * 3
    events = [*told()[:2], *(Added(state(n, (0,), 0.1 * n, label=label), float(n)) for n in (1, 2, 3))]
    (tmp_path / "long.html").write_bytes(as_html(write(tmp_path / "run", events)))
    opened = Visit(launched, (tmp_path / "long.html").as_uri())
    ends = opened.page.evaluate("""async () => {
      const canvas = document.getElementById("tree"), written = [];
      CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
        const from = this.textAlign === "left" ? 0 : 0.5;
        const end = this.getTransform().transformPoint({ x: x + (1 - from) * this.measureText(words).width, y }).x;
        written.push([words, end / canvas.width]);
      };
      dispatchEvent(new KeyboardEvent("keydown", { key: "d" }));
      await new Promise((done) => setTimeout(done, 500));
      return written;
    }""")
    opened.close()
    assert [words for words, _ in ends if words.startswith("3  0.30  changed src/") and words.endswith("…")]
    assert max(end for _, end in ends) <= 1


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", ["told", "batch"])
def test_nothing_needs_a_scroll_to_the_side_whether_the_screen_is_wide_or_narrow(visit, name, size):
    page = visit(name)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    beyond = f"""[...document.querySelectorAll("{CONTROLS}, h1, h2")]
        .filter((each) => each.checkVisibility() && !each.closest("table"))
        .filter((each) => each.getBoundingClientRect().right > innerWidth)
        .map((each) => each.outerHTML)"""
    assert page.evaluate(beyond) == []
    if name == "told":
        page.get_by_text("Filter").click()
        assert page.evaluate(beyond) == []


@pytest.mark.parametrize("name", ["told", "batch"])
def test_every_control_is_reached_by_the_tab_key_and_has_a_name(visit, name):
    page = visit(name)
    if name == "told":
        page.evaluate("ramify.navigation.select(4)")
        page.locator("[data-state='4']").wait_for()
        page.get_by_text("Filter").click()
    shown = f"""[...document.querySelectorAll("{CONTROLS}")]
        .filter((each) => each.checkVisibility() && each.tabIndex >= 0)"""
    page.evaluate(f"{shown}.forEach((each, number) => (each.dataset.number = number))")
    wanted = page.evaluate(f"{shown}.length")
    nameless = "(each) => !(each.ariaLabel || each.textContent.trim() || each.labels?.length)"
    assert page.evaluate(f"{shown}.filter({nameless}).map((each) => each.outerHTML)") == []
    reached = set()
    page.evaluate("document.activeElement.blur()")
    for _ in range(2 * wanted + 10):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.number"))
    assert {str(number) for number in range(wanted)} <= reached


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_text_can_be_told_from_what_is_behind_it(visit, dark):
    assert visit("batch", dark=dark).evaluate(FAINT) == []
    page = visit(dark=dark)
    assert page.evaluate(FAINT) == []
    page.get_by_text("Filter").click()
    for tab in ("diff", "tests", "why", "turns", "cost"):
        page.evaluate(f"ramify.store.set({{ selected: 4, tab: '{tab}' }})")
        page.locator(f"[aria-labelledby=tab-{tab}][data-state='4']").wait_for()
        page.evaluate("document.querySelectorAll('.panel details').forEach((each) => (each.open = true))")
        assert page.evaluate(FAINT) == [], tab


def test_escape_closes_the_menu_and_the_parts_of_the_page_have_names(visit):
    page = visit()
    page.get_by_text("Filter").click()
    page.get_by_label("better").focus()
    page.keyboard.press("Escape")
    assert not page.get_by_label("better").is_visible()
    parts = (("banner", None), ("main", None), ("complementary", "Details"), ("region", "Replay of the search"))
    assert [page.get_by_role(role, name=name).count() for role, name in parts] == [1, 1, 1, 1]
    page.evaluate("ramify.navigation.select(4)")
    assert page.get_by_role("button", name="state 4", exact=True).get_attribute("aria-current") == "step"
