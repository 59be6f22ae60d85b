"""The addresses of the live page: one each, which anything that comes from outside can be put into."""

import re
from urllib.parse import parse_qs, urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st

from springback.dashboards.live_page import links
from springback.sinks.fleet.fleet_state import family_key
from springback.stream_processors.resilience.readings import EpisodeKey
from tests.dashboards.live_page.fake_fleet import family, traits
from tests.examples import examples

TEXT = st.text(max_size=40)  # MessagePack and JSON carry no lone surrogate
KEYS = st.builds(EpisodeKey, agent=TEXT, session=TEXT, episode=TEXT)


def test_an_episode_and_a_window_of_it_have_an_address() -> None:
    key = EpisodeKey("robot-7", "s1", "12")
    assert links.episode_link(key) == f"/episode/{links.agent_token('robot-7')}/{key.mark():016x}"
    assert links.episode_link(key, 0) == f"{links.episode_link(key)}?window=0"
    assert links.agent_link("robot-7") == f"/agent/{links.agent_token('robot-7')}"


def test_a_family_and_its_episodes_name_it_alike() -> None:
    of = traits("navigation")
    reading = family("navigation", method=of.method, version=of.version)
    assert links.family_token(of) == links.family_token(reading) == family_key(reading).hex()
    assert links.family_link(of) == f"/families?family={family_key(reading).hex()}"
    assert links.compare_link(reading) == f"/compare?family={family_key(reading).hex()}"
    assert links.family_token(traits("navigation", "other")) != links.family_token(of)


def test_what_is_no_token_is_no_episode() -> None:
    for token in ("", "12", "g" * 16, "0" * 17, "٣" * 16, "A" * 16, "0x00000000000000", " " * 16, "-000000000000001"):
        assert links.episode_mark(token) is None, token


@settings(max_examples=examples(60))
@given(KEYS, st.none() | st.integers(0, 10**6))
def test_any_id_gives_an_address_that_leads_back(key: EpisodeKey, window: int | None) -> None:
    address = links.episode_link(key, window)
    assert re.fullmatch(r"/episode/[0-9a-f]{32}/[0-9a-f]{16}(\?window=[0-9]+)?", address)
    assert links.episode_mark(urlsplit(address).path.rpartition("/")[2]) == key.mark()


@settings(max_examples=examples(60))
@given(st.dictionaries(st.sampled_from(["search", "sort", "page"]), st.none() | TEXT | st.integers()))
def test_a_query_is_read_as_it_was_written(query: dict[str, str | int | None]) -> None:
    read = parse_qs(urlsplit(links.with_query("/windows", query)).query)
    assert read == {name: [str(value)] for name, value in query.items() if value not in (None, "")}


def test_a_lone_surrogate_that_somebody_searches_for_is_no_fault() -> None:
    assert links.with_query("/", {"search": "\ud800"}) == "/?search=%3F"
