"""The page of `jinjarun serve` in headless Chromium: what a person does, and no error in its console."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.probes.running import Running, of_family, running

pytest.importorskip("selenium", reason="needs: pip install selenium, and chromium with chromium-driver")
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

pytestmark = pytest.mark.skipif(not shutil.which("chromedriver"), reason="needs chromium and chromium-driver")

PATH, CONVERSATION, TEMPLATE, REQUEST = "path", "conversation", "template", "request"
WAIT_SECONDS = 20
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}


@pytest.fixture(scope="module")
def there() -> Iterator[Running]:
    with running(of_family("qwen3"), name="qwen3") as found:
        yield found


@pytest.fixture
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
        assert driver.get_log("browser") == []
    finally:
        driver.quit()


def text_of(driver: webdriver.Chrome, place: str) -> str:
    """The text of `#prompt` or `#next`, without the marks of line breaks."""
    return str(driver.find_element(By.ID, place).get_attribute("textContent")).replace("↵", "")


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not found():
        assert time.monotonic() < end, "the page does not come to show it"
        time.sleep(0.05)


def choose(driver: webdriver.Chrome, what: str, value: str) -> None:
    Select(driver.find_element(By.ID, what)).select_by_value(value)


def put(driver: webdriver.Chrome, field: str, text: str) -> None:
    """As if it were pasted over all that is there."""
    script = (
        "const f = document.getElementById(arguments[0]); f.value = arguments[1]; f.dispatchEvent(new Event('input'))"
    )
    driver.execute_script(script, field, text)


def test_what_a_person_does(there: Running, browser: webdriver.Chrome) -> None:
    browser.get(f"{there.url}/")
    until(lambda: "You are a careful Java assistant." in text_of(browser, "prompt"))
    assert "messages[1].content" in text_of(browser, "prompt")
    until(lambda: "characters kept" in str(browser.find_element(By.ID, "shared").text))
    assert "Show code." in text_of(browser, "next")

    choose(browser, CONVERSATION, "developer")
    until(lambda: "Be brief." in text_of(browser, "prompt"))
    assert "developer-role-renamed" in text_of(browser, "prompt")

    choose(browser, PATH, "transformers:raw")
    until(lambda: "The bare template" in text_of(browser, "prompt"))

    put(browser, TEMPLATE, "{% for m in messages %}\n[{{ m.content }}]\n{% if %}\n{% endfor %}")
    until(lambda: "Syntax error (line 3" in text_of(browser, "prompt"))
    assert "There is no prompt" in text_of(browser, "next")
    browser.find_element(By.CSS_SELECTOR, "#prompt button").click()
    assert selection(browser) == "{% if %}"

    put(browser, TEMPLATE, "{% for m in messages %}[{{ m.content }}]{% endfor %}")
    until(lambda: text_of(browser, "prompt").startswith("[Be brief.][Reverse a string.]"))

    put(browser, REQUEST, "{")
    until(lambda: "not JSON" in text_of(browser, "prompt"))
    put(browser, REQUEST, '{"messages": [{"role": "user", "content": "<b>&amp;</b>\\u0007"}]}')
    until(lambda: text_of(browser, "prompt").startswith("[<b>&amp;</b>␇]"))

    browser.find_element(By.ID, "reset").click()
    until(lambda: "<|im_start|>user" in text_of(browser, "prompt"))
    assert not browser.find_element(By.ID, "reset").is_displayed()


def selection(driver: webdriver.Chrome) -> Any:
    return driver.execute_script(
        "const f = document.getElementById('template');return f.value.slice(f.selectionStart, f.selectionEnd)"
    )


def test_it_fits_a_phone_and_both_schemes(there: Running, browser: webdriver.Chrome) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    grounds = set()
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(f"{there.url}/")
        choose(browser, CONVERSATION, "parallel-calls")
        choose(browser, PATH, "transformers:apply_chat_template")
        until(lambda: "README.md" in text_of(browser, "prompt"))
        width, inner = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner
        edges = browser.execute_script(
            "return [...document.querySelectorAll('section')].map((s) => s.getBoundingClientRect().right)"
        )
        assert max(edges) <= inner
        grounds.add(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_a_server_that_is_gone(browser: webdriver.Chrome) -> None:
    with running(of_family("flat")) as there:
        browser.get(f"{there.url}/")
        until(lambda: "Reverse a string." in text_of(browser, "prompt"))
    choose(browser, PATH, "llama.cpp:raw")
    until(lambda: "Is it still running?" in text_of(browser, "prompt"))
    assert all("net::ERR_CONNECTION_REFUSED" in entry["message"] for entry in browser.get_log("browser"))
