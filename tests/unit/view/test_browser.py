"""The browser that pages are tested in sees what it must: errors, requests, and what axe calls serious."""

from helpers.browser import PHONE, PICTURES

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src *; script-src 'unsafe-inline'"></head>
<body><main><h1>A page</h1>{body}</main></body></html>"""


def page(tmp_path, body):
    path = tmp_path / "page.html"
    path.write_text(PAGE.format(body=body))
    return path


def test_a_sound_page_passes(browser, tmp_path):
    opened = browser.open(page(tmp_path, "<p>Nothing to see.</p>"), width=PHONE, dark=True)
    opened.check("browser-sound")
    assert (PICTURES / "browser-sound.png").read_bytes().startswith(b"\x89PNG")
    assert opened.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches && innerWidth == 360")


def test_errors_requests_and_barriers_are_seen(browser, tmp_path):
    body = "<img src='https://example.org/x.png'><script>console.error('oh'); nowhere()</script>"
    opened = browser.open(page(tmp_path, body))
    assert opened.outside == ["https://example.org/x.png"]
    assert "oh" in opened.errors
    assert any("nowhere is not defined" in error for error in opened.errors)
    assert [line.split(":")[0] for line in opened.serious()] == ["image-alt"]


def test_what_is_too_wide_is_seen(browser, tmp_path):
    assert browser.open(page(tmp_path, "<pre>" + "wide " * 200 + "</pre>"), width=PHONE).overflow() > 1000


def test_without_scripts_nothing_runs(browser, tmp_path):
    opened = browser.open(
        page(tmp_path, "<p id=p>as sent</p><script>p.textContent = 'changed'</script>"), scripts=False
    )
    assert opened.page.locator("#p").text_content() == "as sent"
    opened.check("browser-no-scripts")
