"""What a bridge reports goes on to the emitter of its session, whole."""

import pytest

from springback.producers.contract.frame import EpisodeHeader, NavigationOutcome
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.mapping.assembler import MappedReport
from springback.producers.mapping.live import MappedEmitters, MappedSteps
from springback.producers.mapping.signal_mapping import TimedMessage, parse_mapping
from tests.producers.mapping.mapped_play import GAPS

T0 = 1_790_000_000.0


def test_an_end_goes_on_with_all_that_it_says() -> None:
    header = EpisodeHeader(agent="cart", episode="1", family="hauling")
    end = ReportedEnd(header, "success", T0 + 1.0, NavigationOutcome(path=2.0), realised_magnitude=0.25, extended=True)
    publisher = MemoryPublisher()
    emitters = MappedEmitters(publisher)
    step = ReportedStep(header, 0, {"progress": 1.0, "time_s": T0})
    emitters.report(MappedReport("cart", "s.1", report) for report in (step, end))
    emitters.close()
    [told] = [end for frame in publisher.frames for end in frame.ends]
    assert (told.outcome, told.time_s, told.navigation) == ("success", T0 + 1.0, NavigationOutcome(path=2.0))
    assert (told.realised_magnitude, told.extended) == (0.25, True)


def test_what_is_noted_is_not_called_left_out(caplog: pytest.LogCaptureFixture) -> None:
    text = GAPS.replace('field = "x"', 'field = "x", transform = "progress_from_remaining"')
    steps = MappedSteps(parse_mapping(text.replace("STEP", 'trigger = "p"'), "mine.toml"), MemoryPublisher())
    for second, left in enumerate((0.1, 9.0, None, 4.0)):
        steps.add(TimedMessage("p", T0 + second, {"x": left}))
    steps.close()
    assert str(steps).endswith("; left out: 1 unusable_value, 1 no_progress; noted: 1 progress_started_again")
    logged = [record.getMessage() for record in caplog.records]
    assert [line.partition(" (")[0] for line in logged if "progress_started_again" in line] == ["noted"]
    assert [line.partition(" (")[0] for line in logged if "unusable_value" in line] == ["left out"]
