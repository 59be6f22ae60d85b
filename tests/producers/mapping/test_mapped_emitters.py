"""What a bridge reports goes on to the emitter of its session, whole."""

from springback.producers.contract.frame import EpisodeHeader, NavigationOutcome
from springback.producers.emitter.publishers import MemoryPublisher
from springback.producers.emitter.reports import ReportedEnd, ReportedStep
from springback.producers.mapping.assembler import MappedReport
from springback.producers.mapping.live import MappedEmitters

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
