"""The words of the pages, each explained in a sentence: folded away until somebody asks."""

from nicegui import ui

from springback.stream_processors.metrics.glossary import GLOSSARY


def word_list() -> None:
    """All of them. What a tooltip says too is here for those who have no pointer to hover with."""
    with ui.element("details").classes("sb-card sb-words"):
        with ui.element("summary"):
            ui.label("What the words mean")
        with ui.element("dl"):
            for word in GLOSSARY.values():
                with ui.element("div"):
                    with ui.element("dt"):
                        ui.label(word.word)
                        ui.label(f"of {word.of}").classes("sb-under")
                    with ui.element("dd"):
                        ui.label(word.meaning)
